/**
 * Both halves of a peering as plain objects (docs/design/control-plane.md#what-makes-a-peering-from-manifests-alone): applied by any tool, in any
 * order, gets a peering. Pure.
 */
import {
  apiVersionOf,
  type KubeObject,
  type Namespace,
  type RoleBinding,
  type Secret,
} from '#shared/domain/kube-object.ts';
import { annotation, label, name, systemNamespace } from '#shared/domain/liqo-keys.ts';
import { networkLabel, networkName, networkPort } from '#shared/domain/network-keys.ts';
import { type Configuration, configurations } from '#shared/schema/liqo/configuration.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import { type ResourceSlice, resourceSlices } from '#shared/schema/liqo/resource-slice.ts';
import { type Tenant, tenants } from '#shared/schema/liqo/tenant.ts';
import type { GatewayKeys } from './wireguard-keys.ts';

interface Side {
  readonly id: string;
  readonly podCidrs: readonly string[];
  readonly externalCidrs: readonly string[];
}

export interface LinkPlan {
  /** Which side listens. */
  readonly server: 'consumer' | 'provider';
  readonly serviceType: 'NodePort' | 'LoadBalancer';
  /** Where the other side dials. */
  readonly addresses: readonly string[];
  /** Of the Service at the nodes; only with NodePort. */
  readonly nodePort?: number;
  /** Only with LoadBalancer. */
  readonly loadBalancerIp?: string;
  readonly mtu: number;
  readonly keys: { readonly consumer: GatewayKeys; readonly provider: GatewayKeys };
}

export interface PeeringPlan {
  readonly consumer: Side;
  readonly provider: Side;
  /** Absent: the clusters share no network. */
  readonly link?: LinkPlan;
  /** By which the consumer logs in at the provider. */
  readonly kubeconfig: string;
  /** User of that kubeconfig. */
  readonly user: string;
  readonly slice: {
    readonly name: string;
    readonly class: string;
    readonly resources: Readonly<Record<string, string>>;
  };
}

export interface Half {
  readonly objects: readonly KubeObject[];
  readonly secrets: readonly Secret[];
}

const keysSecret = 'gw-keys';
const credentialsSecret = 'cplane-secret';
const liqo = { template: systemNamespace } as const;

export function peeringManifests(plan: PeeringPlan): { readonly consumer: Half; readonly provider: Half } {
  const { consumer, provider } = plan;
  return {
    consumer: {
      objects: [tenantNamespace(provider.id), ...linkOf(plan, 'consumer'), slice(plan)],
      secrets: [...keysOf(plan, 'consumer'), credentials(plan)],
    },
    provider: {
      objects: [tenantNamespace(consumer.id), ...linkOf(plan, 'provider'), tenant(consumer.id), binding(plan)],
      secrets: keysOf(plan, 'provider'),
    },
  };
}

const peerLabels = (peer: string): Record<string, string> => ({ [label.remoteClusterId]: peer });
const within = (peer: string, object: string) => ({
  name: object,
  namespace: name.tenantNamespace(peer),
  labels: peerLabels(peer),
});

const tenantNamespace = (peer: string): Namespace => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: {
    name: name.tenantNamespace(peer),
    labels: { ...peerLabels(peer), [label.tenantNamespace]: 'true' },
  },
});

/** What the cluster of `role` needs of the link: the ranges of its peer, the peer's key, and its own end. */
function linkOf({ link, ...sides }: PeeringPlan, role: 'consumer' | 'provider'): KubeObject[] {
  if (link === undefined) return [];
  const peer = role === 'consumer' ? sides.provider : sides.consumer;
  const peerKeys = role === 'consumer' ? link.keys.provider : link.keys.consumer;
  return [
    configuration(peer),
    publicKey(peer.id, peerKeys),
    link.server === role ? server(peer.id, link) : client(peer.id, link),
  ];
}

const configuration = ({ id, podCidrs, externalCidrs }: Side): Configuration => ({
  apiVersion: apiVersionOf(configurations),
  kind: configurations.kind,
  metadata: within(id, id),
  spec: { remote: { cidr: { pod: [...podCidrs], external: [...externalCidrs] } } },
});

const publicKey = (peer: string, keys: GatewayKeys): KubeObject => ({
  apiVersion: apiVersionOf(networkKinds.publicKeys),
  kind: networkKinds.publicKeys.kind,
  metadata: {
    ...within(peer, 'gw-publickey'),
    labels: { ...peerLabels(peer), [networkLabel.gatewayResource]: 'true' },
  },
  ...{ spec: { publicKey: keys.publicKey } },
});

const server = (peer: string, { serviceType, nodePort, loadBalancerIp, mtu }: LinkPlan): KubeObject => ({
  apiVersion: apiVersionOf(networkKinds.gatewayServers),
  kind: networkKinds.gatewayServers.kind,
  metadata: within(peer, 'server'),
  ...{
    spec: {
      endpoint: {
        port: networkPort.wireGuard,
        serviceType,
        ...(nodePort === undefined ? {} : { nodePort }),
        ...(loadBalancerIp === undefined ? {} : { loadBalancerIP: loadBalancerIp }),
      },
      mtu,
      secretRef: { name: keysSecret },
      serverTemplateRef: {
        apiVersion: apiVersionOf(networkKinds.wgGatewayServerTemplates),
        kind: networkKinds.wgGatewayServerTemplates.kind,
        name: networkName.serverTemplate,
        namespace: liqo.template,
      },
    },
  },
});

const client = (peer: string, { addresses, nodePort, mtu }: LinkPlan): KubeObject => ({
  apiVersion: apiVersionOf(networkKinds.gatewayClients),
  kind: networkKinds.gatewayClients.kind,
  metadata: within(peer, 'client'),
  ...{
    spec: {
      endpoint: { addresses: [...addresses], port: nodePort ?? networkPort.wireGuard, protocol: 'UDP' },
      mtu,
      secretRef: { name: keysSecret },
      clientTemplateRef: {
        apiVersion: apiVersionOf(networkKinds.wgGatewayClientTemplates),
        kind: networkKinds.wgGatewayClientTemplates.kind,
        name: networkName.clientTemplate,
        namespace: liqo.template,
      },
    },
  },
});

const keysOf = ({ link, consumer, provider }: PeeringPlan, role: 'consumer' | 'provider'): Secret[] => {
  if (link === undefined) return [];
  const peer = role === 'consumer' ? provider.id : consumer.id;
  const { privateKey, publicKey: own } = link.keys[role];
  return [
    {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: {
        ...within(peer, keysSecret),
        labels: { ...peerLabels(peer), [networkLabel.gatewayResource]: 'true' },
      },
      type: 'Opaque',
      data: { privateKey, publicKey: own },
    },
  ];
};

const credentials = ({ consumer, provider, kubeconfig }: PeeringPlan): Secret => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: {
    ...within(provider.id, credentialsSecret),
    labels: { ...peerLabels(provider.id), [label.identityType]: 'ControlPlane' },
    annotations: { [annotation.remoteTenantNamespace]: name.tenantNamespace(consumer.id) },
  },
  type: 'Opaque',
  data: { kubeconfig: Buffer.from(kubeconfig).toString('base64') },
});

const slice = ({ provider, slice: { name: own, class: kind, resources } }: PeeringPlan): ResourceSlice => ({
  apiVersion: apiVersionOf(resourceSlices),
  kind: resourceSlices.kind,
  metadata: {
    ...within(provider.id, own),
    labels: { ...peerLabels(provider.id), [label.remoteId]: provider.id, [label.replication]: 'true' },
    annotations: { [annotation.createVirtualNode]: 'true' },
  },
  spec: { class: kind, providerClusterID: provider.id, resources: { ...resources } },
});

const tenant = (consumer: string): Tenant => ({
  apiVersion: apiVersionOf(tenants),
  kind: tenants.kind,
  metadata: within(consumer, consumer),
  spec: { clusterID: consumer, authzPolicy: 'TolerateNoHandshake', tenantCondition: 'Active' },
});

const binding = ({ consumer, user }: PeeringPlan): RoleBinding => ({
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'RoleBinding',
  metadata: within(consumer.id, 'liqo-binding-liqo-remote-controlplane'),
  roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'liqo-remote-controlplane' },
  subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: user }],
});
