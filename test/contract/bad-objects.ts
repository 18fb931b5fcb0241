/** Objects that the API server must refuse, and what the refusal must name. */
import type { KindDefinition } from '#shared/schema/definition/kind.ts';
import { brokerLinks } from '#shared/schema/isthmus/broker-link.ts';
import { peerings } from '#shared/schema/isthmus/peering.ts';
import { peeringPolicies } from '#shared/schema/isthmus/peering-policy.ts';
import { configurations } from '#shared/schema/liqo/configuration.ts';
import { connections } from '#shared/schema/liqo/connection.ts';
import { firewallConfigurations } from '#shared/schema/liqo/firewall-configuration.ts';
import { foreignClusters } from '#shared/schema/liqo/foreign-cluster.ts';
import { gatewayClients } from '#shared/schema/liqo/gateway-client.ts';
import { gatewayServers } from '#shared/schema/liqo/gateway-server.ts';
import { identities } from '#shared/schema/liqo/identity.ts';
import { internalNodes } from '#shared/schema/liqo/internal-node.ts';
import { ips } from '#shared/schema/liqo/ip.ts';
import { namespaceMaps } from '#shared/schema/liqo/namespace-map.ts';
import { namespaceOffloadings } from '#shared/schema/liqo/namespace-offloading.ts';
import { networks } from '#shared/schema/liqo/network.ts';
import { publicKeys } from '#shared/schema/liqo/public-key.ts';
import { quotas } from '#shared/schema/liqo/quota.ts';
import { renews } from '#shared/schema/liqo/renew.ts';
import { resourceSlices } from '#shared/schema/liqo/resource-slice.ts';
import { routeConfigurations } from '#shared/schema/liqo/route-configuration.ts';
import { shadowEndpointSlices } from '#shared/schema/liqo/shadow-endpoint-slice.ts';
import { shadowPods } from '#shared/schema/liqo/shadow-pod.ts';
import { tenants } from '#shared/schema/liqo/tenant.ts';
import { virtualNodes } from '#shared/schema/liqo/virtual-node.ts';
import { vkOptionsTemplates } from '#shared/schema/liqo/vk-options-template.ts';
import { wgGatewayClients } from '#shared/schema/liqo/wg-gateway-client.ts';

export interface Metadata {
  readonly name: string;
  readonly namespace?: string;
}

export interface BadObject {
  readonly why: string;
  readonly kind: KindDefinition;
  readonly metadata: Metadata;
  readonly spec?: unknown;
  readonly says: readonly string[];
  /** False: only the API server can know. */
  readonly alsoZod?: false;
}

const bad = (why: string, kind: KindDefinition, spec: unknown, ...says: readonly [string, ...string[]]): BadObject => ({
  why,
  kind,
  spec,
  says,
  metadata: {
    name: kind === (namespaceOffloadings as KindDefinition) ? 'offloading' : 'bad',
    ...(kind.namespaced ? { namespace: 'refused' } : {}),
  },
});

export const badObjects: readonly BadObject[] = [
  bad('a broker link without a URL', brokerLinks, { tenant: 't', clusterId: 'c' }, 'spec.url', 'Required'),
  bad('a URL that is none', brokerLinks, { url: 'ftp://x', tenant: 't', clusterId: 'c' }, 'spec.url', 'ftp://x'),
  bad(
    'a hash that is none',
    brokerLinks,
    { url: 'https://x', tenant: 't', clusterId: 'c', caHash: 'short' },
    'spec.caHash',
    'short',
  ),
  bad('an empty account', brokerLinks, { url: 'https://x', tenant: '', clusterId: 'c' }, 'spec.tenant'),
  bad('a peering without a provider', peerings, {}, 'spec.provider', 'Required'),
  bad('a cluster ID in capitals', peerings, { provider: 'Milan' }, 'spec.provider', 'Milan'),
  bad('a cluster ID with a dot', peerings, { provider: 'milan.it' }, 'spec.provider'),
  bad('a cluster ID of 64 characters', peerings, { provider: 'a'.repeat(64) }, 'spec.provider', '63'),
  bad(
    'resources that are no quantities',
    peerings,
    { provider: 'milan', resources: { cpu: 'two' } },
    'spec.resources.cpu',
    'two',
  ),
  bad('a fraction as a number', peerings, { provider: 'milan', resources: { cpu: 0.5 } }, 'spec.resources.cpu'),
  bad('an empty class', peerings, { provider: 'milan', class: '' }, 'spec.class'),
  bad(
    'a policy about a peer that cannot exist',
    peeringPolicies,
    { asConsumer: { peers: ['a b'] } },
    'peers[0]',
    'a b',
  ),
  bad(
    'a limit that is no quantity',
    peeringPolicies,
    { asProvider: { maxResourcesPerPeer: { memory: '4 GB' } } },
    'memory',
  ),
  bad(
    'a switch that is text',
    peeringPolicies,
    { asProvider: { enabled: 'yes' } },
    'spec.asProvider.enabled',
    'boolean',
  ),
  bad(
    'a kind that is never reflected',
    peeringPolicies,
    { reflectedKinds: ['node'] },
    'spec.reflectedKinds[0]',
    '"service"',
  ),
  bad('a foreign cluster without ID', foreignClusters, {}, 'spec.clusterID', 'Required'),
  bad('a foreign cluster without spec', foreignClusters, undefined, 'spec', 'Required'),
  bad(
    'a tenant of an unknown policy',
    tenants,
    { clusterID: 'rome', authzPolicy: 'Trust' },
    'spec.authzPolicy',
    '"KeysExchange"',
  ),
  bad(
    'a tenant in an unknown condition',
    tenants,
    { clusterID: 'rome', tenantCondition: 'Gone' },
    'spec.tenantCondition',
    '"Drained"',
  ),
  bad('a signature that is not base64', tenants, { clusterID: 'rome', signature: '%%%' }, 'spec.signature', '%%%'),
  bad(
    'a key of no bytes',
    renews,
    { consumerClusterID: 'rome', identityType: 'ControlPlane', publicKey: '' },
    'spec.publicKey',
  ),
  bad(
    'an identity without credentials',
    identities,
    { clusterID: 'milan', type: 'ControlPlane' },
    'spec.authParams',
    'Required',
  ),
  bad(
    'an identity of an unknown type',
    identities,
    { clusterID: 'milan', type: 'Admin', authParams: {} },
    'spec.type',
    'Admin',
  ),
  bad(
    'incomplete AWS credentials',
    identities,
    { clusterID: 'milan', type: 'ControlPlane', authParams: { awsConfig: { awsUserArn: 'a' } } },
    'spec.authParams.awsConfig.awsClusterName',
  ),
  bad('a slice of nonsense', resourceSlices, { resources: { memory: '4Gib' } }, 'spec.resources.memory', '4Gib'),
  bad('a list in place of base64', resourceSlices, { csr: ['x'] }, 'spec.csr'),
  bad('a slice from nowhere', resourceSlices, { consumerClusterID: '-rome' }, 'spec.consumerClusterID', '-rome'),
  bad('a renewal without a consumer', renews, { identityType: 'ControlPlane' }, 'spec.consumerClusterID', 'Required'),
  bad('a quota without a user', quotas, { user: '', resources: {} }, 'spec.user'),
  bad('a quota without resources', quotas, { user: 'u' }, 'spec.resources', 'Required'),
  bad(
    'an unknown enforcement',
    quotas,
    { user: 'u', resources: {}, limitsEnforcement: 'Strict' },
    'spec.limitsEnforcement',
    '"Hard"',
  ),
  bad('a virtual node of no provider', virtualNodes, {}, 'spec.clusterID', 'Required'),
  bad(
    'a taint with an unknown effect',
    virtualNodes,
    { clusterID: 'milan', taints: [{ key: 'a', effect: 'Explode' }] },
    'spec.taints[0].effect',
    'Explode',
  ),
  bad(
    'an affinity with an unknown operator',
    virtualNodes,
    {
      clusterID: 'milan',
      offloadingPatch: {
        affinity: {
          nodeAffinity: {
            requiredDuringSchedulingIgnoredDuringExecution: {
              nodeSelectorTerms: [{ matchExpressions: [{ key: 'a', operator: 'Is' }] }],
            },
          },
        },
      },
    },
    'matchExpressions[0].operator',
    'Is',
  ),
  bad('a storage class without name', virtualNodes, { clusterID: 'milan', storageClasses: [{}] }, 'storageClassName'),
  bad('a mapping to a number', namespaceMaps, { desiredMapping: { shop: 7 } }, 'spec.desiredMapping.shop', 'string'),
  bad(
    'a selected name that is not given',
    namespaceOffloadings,
    { namespaceMappingStrategy: 'SelectedName' },
    'remoteNamespaceName',
    'required with namespaceMappingStrategy SelectedName',
  ),
  bad(
    'a selected name that is empty',
    namespaceOffloadings,
    { namespaceMappingStrategy: 'SelectedName', remoteNamespaceName: '' },
    'remoteNamespaceName',
  ),
  bad(
    'a remote name that no namespace can have',
    namespaceOffloadings,
    { namespaceMappingStrategy: 'SelectedName', remoteNamespaceName: 'No.Name' },
    'spec.remoteNamespaceName',
    'No.Name',
  ),
  bad(
    'an unknown strategy',
    namespaceOffloadings,
    { podOffloadingStrategy: 'Anywhere' },
    'spec.podOffloadingStrategy',
    '"LocalAndRemote"',
  ),
  bad('no spec', namespaceOffloadings, undefined, 'spec', 'Required'),
  {
    ...bad('another name than `offloading`', namespaceOffloadings, {}, "metadata.name must be 'offloading'"),
    metadata: { name: 'mine', namespace: 'refused' },
    alsoZod: false,
  },
  bad('a shadow pod without pod', shadowPods, {}, 'spec.pod', 'Required'),
  bad('a shadow pod without containers', shadowPods, { pod: { containers: [] } }, 'spec.pod.containers'),
  bad('a container without name', shadowPods, { pod: { containers: [{ image: 'x' }] } }, 'spec.pod.containers[0].name'),
  bad('a pod that is text', shadowPods, { pod: 'nginx' }, 'spec.pod', 'object'),
  bad(
    'an endpoint without addresses',
    shadowEndpointSlices,
    { template: { endpoints: [{}] } },
    'endpoints[0].addresses',
  ),
  bad('an unknown address type', shadowEndpointSlices, { template: { addressType: 'MAC' } }, 'addressType', 'MAC'),
  bad(
    'a template without image',
    vkOptionsTemplates,
    { createNode: true, disableNetworkCheck: true, metricsEnabled: true },
    'containerImage',
  ),
  bad(
    'a reflector without workers',
    vkOptionsTemplates,
    {
      createNode: true,
      disableNetworkCheck: true,
      metricsEnabled: true,
      containerImage: 'x',
      reflectorsConfig: { pod: {} },
    },
    'spec.reflectorsConfig.pod.workers',
  ),
  bad('a network whose range is none', networks, { cidr: '10.0.0.0/33' }, 'spec.cidr', '10.0.0.0/33'),
  bad('a network of IPv6', networks, { cidr: 'fd00::/8' }, 'spec.cidr', 'fd00::/8'),
  bad('a network that sets a negative number aside', networks, { cidr: '10.0.0.0/8', preAllocated: -1 }, '-1'),
  bad('an exposed address that is none', ips, { ip: '10.0.0.256' }, 'spec.ip', '10.0.0.256'),
  bad(
    'a malformed range of a peer',
    configurations,
    { remote: { cidr: { pod: ['10.0.0.0/16', '10.1.0.0'] } } },
    'spec.remote.cidr.pod[1]',
    '10.1.0.0',
  ),
  bad(
    'an MTU below 1280',
    gatewayServers,
    { mtu: 1279, endpoint: { port: 51840 } },
    'spec.mtu',
    '1279',
    'greater than or equal to 1280',
  ),
  bad('an MTU of the client below 1280', gatewayClients, { mtu: 576 }, 'spec.mtu', '576', '1280'),
  bad(
    'a tunnel over TCP',
    gatewayClients,
    { endpoint: { addresses: ['192.0.2.1'], port: 51_840, protocol: 'TCP' } },
    'spec.endpoint',
    'protocol is TCP',
    'invalid_input',
  ),
  bad(
    'metrics of a gateway, which are not served',
    wgGatewayClients,
    { deployment: {}, metrics: { enabled: true } },
    'spec.metrics',
    'metrics.enabled is true',
    'invalid_input',
  ),
  bad(
    'a share of more than a hundredfold',
    peeringPolicies,
    { asProvider: { sharePercent: 10_001 } },
    'spec.asProvider.sharePercent',
    '10000',
  ),
  bad('a server without a port', gatewayServers, { endpoint: {} }, 'spec.endpoint', 'port, or ports'),
  bad(
    'a server with one port twice',
    gatewayServers,
    { endpoint: { ports: [1, 1] } },
    'spec.endpoint',
    'ports names one port twice',
  ),
  bad(
    'a server with a port and a list of ports',
    gatewayServers,
    { endpoint: { port: 1, ports: [2] } },
    'port and ports exclude each other',
  ),
  bad(
    'a server with two kinds of node ports',
    gatewayServers,
    { endpoint: { port: 1, nodePort: 30_000, nodePorts: [30_001] } },
    'nodePort and nodePorts exclude each other',
  ),
  bad(
    'a key of 31 bytes',
    publicKeys,
    { publicKey: 'YWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYQ==' },
    'spec.publicKey',
    '32 bytes',
  ),
  bad('a key that is no base64', publicKeys, { publicKey: 'no key' }, 'spec.publicKey', 'no key'),
  bad('a connection to nothing', connections, { type: 'Server' }, 'spec.gatewayRef', 'Required'),
  bad('a connection of an unknown type', connections, { type: 'Relay', gatewayRef: {} }, 'spec.type', 'Relay'),
  bad('a node without an overlay address', internalNodes, { interface: { gateway: { name: 'x' } } }, 'Required'),
  bad('a route table without rules', routeConfigurations, { table: { name: 'x', rules: [] } }, 'spec.table.rules'),
  bad(
    'a chain with two kinds of rules',
    firewallConfigurations,
    {
      table: {
        name: 'x',
        family: 'IPV4',
        chains: [{ name: 'c', type: 'nat', policy: 'accept', hook: 'input', rules: { natRules: [], filterRules: [] } }],
      },
    },
    'spec.table.chains[0].rules',
    'at most one of natRules, filterRules and routeRules',
  ),
];
