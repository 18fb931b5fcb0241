/** GatewayClient: the end of a link that dials. */
import { networkName } from '#shared/domain/network-keys.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import type { DesiredSet, KubeManifest } from '#shared/schema/protocol/agent-protocol.ts';
import { isOfPeer } from './derived.ts';
import { broughtByGateway, candidatesOf, checkGateway, gatewayAnnotations, hostPattern, isPort } from './gateway.ts';
import { type BrokerKind, bothRoles, peeringLabels, watched } from './kind.ts';
import { asObject, pick, specOf, strayField } from './manifest.ts';

export const gatewayClient: BrokerKind<'GatewayClient'> = {
  type: networkKinds.gatewayClients,
  accepted: {
    roles: bothRoles,
    names: (set) => [set.peer],
    labels: peeringLabels,
    annotations: gatewayAnnotations,
    members: { spec: ['clientTemplateRef', 'mtu', 'endpoint'] },
    check: checkClient,
  },
  caches: watched(networkKinds.gatewayClients),
  isDerived: isOfPeer,
  observed: (object) => ({ ...pick(object.status, 'conditions'), candidates: candidatesOf(object) }),
  takedown: { consumer: 'link', provider: 'link' },
  removedBy: 'agent',
  announcedRanges: () => [],
  brings: broughtByGateway,
};

function checkClient(manifest: KubeManifest, set: DesiredSet): string | undefined {
  const endpoint = asObject(specOf(manifest).endpoint);
  const addresses = Array.isArray(endpoint.addresses) ? (endpoint.addresses as unknown[]) : [];
  const wrong =
    addresses.length === 0 ? 'none' : addresses.find((one) => typeof one !== 'string' || !hostPattern.test(one));
  if (wrong !== undefined)
    return `spec.endpoint.addresses has ${JSON.stringify(wrong)}; accepted are IP addresses or host names`;
  if (!isPort(endpoint.port)) return `spec.endpoint.port is ${JSON.stringify(endpoint.port)}; accepted is 1 to 65535`;
  if (endpoint.protocol !== undefined && endpoint.protocol !== 'UDP')
    return `spec.endpoint.protocol is ${JSON.stringify(endpoint.protocol)}; accepted is UDP`;
  return (
    strayField(endpoint, ['addresses', 'port', 'protocol'], 'spec.endpoint') ??
    checkGateway(manifest, set, {
      field: 'clientTemplateRef',
      kind: 'WgGatewayClientTemplate',
      name: networkName.clientTemplate,
      otherEnd: 'GatewayServer',
    })
  );
}
