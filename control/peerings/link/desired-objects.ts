/** The objects of a link that the broker asks each side for: ranges first, then the gateways, then what each gateway must know of the other. */
import { label, name, systemNamespace } from '#shared/domain/liqo-keys.ts';
import { isthmusNetworkAnnotation, networkLabel, networkName, networkPort } from '#shared/domain/network-keys.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import type { KubeManifest, PeeringRole } from '#shared/schema/protocol/agent-protocol.ts';
import type { Link, LinkEnd } from '../../model/link.ts';
import type { PeeringSpec } from '../../model/peering-records.ts';
import { manifest } from '../core/manifest.ts';
import { otherRole } from '../core/roles.ts';

/** Every IPv4 path carries as much; less than that is no finding. */
const leastMtu = 576;
type Parties = Pick<PeeringSpec, 'consumer' | 'provider'>;

/** In order. What is not known yet is left out: a side is asked for no more than it can do. */
export function linkObjects(spec: Parties, link: Link, side: PeeringRole): readonly KubeManifest[] {
  const self = spec[side];
  const peer = spec[otherRole(side)];
  const { layout } = link;
  const there = link[otherRole(side)];
  const place = { name: peer, namespace: name.tenantNamespace(peer), labels: { [label.remoteClusterId]: peer } };
  const annotations = { ...candidatesOf(there), ...smallerSize(there, layout.mtu) };
  const known = Object.keys(annotations).length === 0 ? {} : { annotations };
  const objects: KubeManifest[] = [];
  if (there.ranges) {
    objects.push(manifest(networkKinds.configurations, place, { spec: { remote: { cidr: there.ranges } } }));
  }
  if (layout.server === self) {
    const endpoint = { port: networkPort.wireGuard, serviceType: layout.serviceType };
    const serverTemplateRef = template('WgGatewayServerTemplate', networkName.serverTemplate);
    const spec = { serverTemplateRef, mtu: layout.mtu, endpoint };
    objects.push(manifest(networkKinds.gatewayServers, { ...place, ...known }, { spec }));
  } else {
    const endpoint = endpointOf(there.candidates[0]);
    const clientTemplateRef = template('WgGatewayClientTemplate', networkName.clientTemplate);
    if (endpoint) {
      const spec = { clientTemplateRef, mtu: layout.mtu, endpoint };
      objects.push(manifest(networkKinds.gatewayClients, { ...place, ...known }, { spec }));
    }
  }
  if (there.key !== undefined) {
    const labels = { ...place.labels, [networkLabel.gatewayResource]: 'true' };
    objects.push(manifest(networkKinds.publicKeys, { ...place, labels }, { spec: { publicKey: there.key } }));
  }
  return objects;
}

const candidatesOf = ({ candidates }: LinkEnd): Record<string, string> =>
  candidates.length === 0 ? {} : { [isthmusNetworkAnnotation.peerCandidates]: JSON.stringify(candidates) };

/** What one side finds both must keep to: the path need not be the same in both directions. */
const smallerSize = ({ connection }: LinkEnd, most: number): Record<string, string> => {
  const mtu = connection?.mtu ?? 0;
  return mtu >= leastMtu && mtu < most ? { [isthmusNetworkAnnotation.peerMtu]: String(mtu) } : {};
};

const template = (kind: string, called: string) => ({
  apiVersion: 'networking.liqo.io/v1beta1',
  kind,
  name: called,
  namespace: systemNamespace,
});

function endpointOf(candidate: string | undefined) {
  if (candidate === undefined) return undefined;
  const at = candidate.lastIndexOf(':');
  return { addresses: [candidate.slice(0, at)], port: Number(candidate.slice(at + 1)), protocol: 'UDP' };
}
