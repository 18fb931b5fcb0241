/** GatewayServer: the end of a link that listens. */
import { networkName } from '#shared/domain/network-keys.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import type { DesiredSet, KubeManifest } from '#shared/schema/protocol/agent-protocol.ts';
import { isOfPeer } from './derived.ts';
import { broughtByGateway, candidatesOf, checkGateway, gatewayAnnotations, isPort } from './gateway.ts';
import { type BrokerKind, bothRoles, peeringLabels, watched } from './kind.ts';
import { asObject, pick, specOf, strayField } from './manifest.ts';

const serviceTypes: readonly unknown[] = ['LoadBalancer', 'NodePort', 'ClusterIP'];

export const gatewayServer: BrokerKind<'GatewayServer'> = {
  type: networkKinds.gatewayServers,
  accepted: {
    roles: bothRoles,
    names: (set) => [set.peer],
    labels: peeringLabels,
    annotations: gatewayAnnotations,
    members: { spec: ['serverTemplateRef', 'mtu', 'endpoint'] },
    check: checkServer,
  },
  caches: watched(networkKinds.gatewayServers),
  isDerived: isOfPeer,
  observed: (object) => ({ ...pick(object.status, 'endpoint', 'conditions'), candidates: candidatesOf(object) }),
  takedown: { consumer: 'link', provider: 'link' },
  removedBy: 'agent',
  announcedRanges: () => [],
  brings: broughtByGateway,
};

function checkServer(manifest: KubeManifest, set: DesiredSet): string | undefined {
  const endpoint = asObject(specOf(manifest).endpoint);
  if (!isPort(endpoint.port)) return `spec.endpoint.port is ${JSON.stringify(endpoint.port)}; accepted is 1 to 65535`;
  if (!serviceTypes.includes(endpoint.serviceType))
    return `spec.endpoint.serviceType is ${JSON.stringify(endpoint.serviceType)}; accepted is ${serviceTypes.join(', ')}`;
  return (
    strayField(endpoint, ['port', 'serviceType'], 'spec.endpoint') ??
    checkGateway(manifest, set, {
      field: 'serverTemplateRef',
      kind: 'WgGatewayServerTemplate',
      name: networkName.serverTemplate,
      otherEnd: 'GatewayClient',
    })
  );
}
