/** The one IPAM of the controllers: rebuilt from the API server before its first use, and told of node changes from then on. */
import type { Cache, Cluster } from '#kube/model/types.ts';
import { isExact, parseCidr } from '#shared/domain/cidr.ts';
import { type EndpointSlice, endpointSlices, nodes } from '#shared/domain/core-kinds.ts';
import { type KubeObject, keyOf, type Node } from '#shared/domain/kube-object.ts';
import { isthmusNetworkAnnotation, networkAnnotation, networkLabel, networkType } from '#shared/domain/network-keys.ts';
import type { InternalNode } from '#shared/schema/liqo/internal-node.ts';
import type { Ip } from '#shared/schema/liqo/ip.ts';
import type { Network } from '#shared/schema/liqo/network.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import { Ipam } from '../ipam/ipam.ts';

export const owner = {
  network: (key: string): string => `Network ${key}`,
  ip: (key: string): string => `IP ${key}`,
  node: (name: string): string => `InternalNode ${name}`,
  /** Of what a node has for itself: its addresses and the range of its pods. */
  host: (name: string): string => `Node ${name}`,
  /** Of what a node is connected to: its networks, gateways and resolvers. */
  nodeNetworks: (name: string): string => `what Node ${name} is connected to`,
  apiServers: 'the API servers',
  /** Of the InternalFabric, which is named like its gateway. */
  fabric: (key: string): string => `InternalFabric ${key}`,
};

export interface NetworkIpam {
  readonly ipam: Ipam;
  /** Owner of each tunnel id. */
  readonly tunnelIds: Map<number, string>;
  /** Resolves when everything granted before is known. */
  ready(signal: AbortSignal): Promise<void>;
}

/** What is fixed comes before what may be moved: reference 4.5. */
const typeOrder: readonly (string | undefined)[] = [
  networkType.pod,
  networkType.service,
  networkType.reserved,
  networkType.external,
  networkType.internal,
];
const isPreinstalled = ({ metadata }: KubeObject): boolean =>
  metadata.annotations?.[networkAnnotation.preinstalled] === 'true';

/** What was granted comes first, then the installation's own ranges in their order: no peer can take them. */
export function reservationOrder(networks: readonly Network[]): readonly Network[] {
  const typeOf = ({ metadata }: Network): number => {
    const at = typeOrder.indexOf(metadata.labels?.[networkLabel.networkType]);
    return at === -1 ? typeOrder.length : at;
  };
  const age = ({ metadata }: Network): string => metadata.creationTimestamp ?? '';
  return networks
    .filter((one) => one.status?.cidr !== undefined || isPreinstalled(one))
    .toSorted(
      (a, b) =>
        Number(b.status?.cidr !== undefined) - Number(a.status?.cidr !== undefined) ||
        Number(isPreinstalled(b)) - Number(isPreinstalled(a)) ||
        typeOf(a) - typeOf(b) ||
        age(a).localeCompare(age(b)) ||
        keyOf(a).localeCompare(keyOf(b)),
    );
}

const originOf = ({ metadata }: Network): { readonly origin?: 'announced' | 'named' } => {
  if (metadata.labels?.[networkLabel.cidrType] === undefined) return {};
  const isNamed = metadata.annotations?.[isthmusNetworkAnnotation.rangeNamed] === 'true';
  return { origin: isNamed ? 'named' : 'announced' };
};

export const requestOf = (network: Network) => ({
  owner: owner.network(keyOf(network)),
  ...originOf(network),
  wanted: network.spec.cidr,
  immutable: network.metadata.labels?.[networkLabel.networkNotRemapped] === 'true',
  shared: network.metadata.labels?.[networkLabel.networkShared] === 'true',
  preAllocated: network.spec.preAllocated ?? 0,
  current: network.status?.cidr,
});

/** The Network that addresses of this kind come from: the oldest one of its type. */
export const networkOfType = (networks: readonly Network[], type: string): Network | undefined =>
  networks
    .filter(({ metadata }) => metadata.labels?.[networkLabel.networkType] === type && !metadata.deletionTimestamp)
    .toSorted((a, b) => (a.metadata.creationTimestamp ?? '').localeCompare(b.metadata.creationTimestamp ?? ''))[0];

/** Addresses are granted only from a range that is written down, so that the next leader finds it. */
export const grantedRange = (network: Network | undefined): string | undefined =>
  network?.metadata.deletionTimestamp === undefined ? network?.status?.cidr : undefined;

/** Of the machine itself, as ranges. */
export const hostAddresses = ({ status }: Node): readonly string[] =>
  (status?.addresses ?? [])
    .filter(({ type }) => type === 'InternalIP' || type === 'ExternalIP')
    .map(({ address }) => `${address}/32`);

export function nodeRanges(node: Node): readonly string[] {
  const { spec } = node;
  return [...hostAddresses(node), ...(spec?.podCIDRs ?? (spec?.podCIDR ? [spec.podCIDR] : []))];
}

/** As its node process reported it. */
export const nodeNetworksOf = ({ metadata }: InternalNode): readonly string[] =>
  (metadata.annotations?.[isthmusNetworkAnnotation.nodeNetworks] ?? '')
    .split(',')
    .filter((text) => parseCidr(text) !== undefined && isExact(text));

/** The Service by which every cluster finds its API servers; they keep its endpoints themselves. */
export const apiServers = { namespace: 'default', labelSelector: 'kubernetes.io/service-name=kubernetes' } as const;

export function createNetworkIpam({ api, caches }: Cluster, hosts: Cache<Node>): NetworkIpam {
  const ipam = new Ipam();
  const internalNodes = caches.cache(networkKinds.internalNodes);
  const apiServerSlices = caches.cache(endpointSlices, apiServers);
  const tunnelIds = new Map<number, string>();
  let rebuilt: Promise<void> | undefined;

  async function rebuild(signal: AbortSignal): Promise<void> {
    // From the API server itself: a cache may lag behind what the leader before this one wrote last.
    const [networks, ips, nodesHere, fabrics, all, servers] = await Promise.all([
      api.list(networkKinds.networks, {}, signal),
      api.list(networkKinds.ips, {}, signal),
      api.list(networkKinds.internalNodes, {}, signal),
      api.list(networkKinds.internalFabrics, {}, signal),
      api.list(nodes, {}, signal),
      api.list(endpointSlices, apiServers, signal),
    ]);
    const inOrder = reservationOrder(networks);
    for (const network of inOrder.filter(({ status }) => status?.cidr !== undefined))
      ipam.grantPrefix(requestOf(network));
    for (const node of all) ipam.occupy(owner.host(node.metadata.name), nodeRanges(node));
    for (const one of nodesHere) ipam.occupy(owner.nodeNetworks(one.metadata.name), nodeNetworksOf(one));
    ipam.occupy(owner.apiServers, apiServerRanges(servers));
    for (const network of inOrder) ipam.grantPrefix(requestOf(network));
    const internal = networkOfType(networks, networkType.internal);
    const from = internal && owner.network(keyOf(internal));
    for (const ip of ips) restoreIp(ipam, ip);
    if (from) {
      for (const one of nodesHere) ipam.grantAddress(owner.node(one.metadata.name), from, one.spec.interface.node.ip);
      for (const one of fabrics) ipam.grantAddress(owner.fabric(keyOf(one)), from, one.spec.interface.gateway.ip);
    }
    for (const one of fabrics) {
      const id = Number(one.metadata.annotations?.[isthmusNetworkAnnotation.vni]);
      if (id > 0) tunnelIds.set(id, keyOf(one));
    }
    hosts.subscribe(({ before, after }) => {
      const name = (after ?? before)?.metadata.name ?? '';
      ipam.occupy(owner.host(name), after === undefined ? [] : nodeRanges(after));
    });
    internalNodes.subscribe(({ before, after }) => {
      const name = (after ?? before)?.metadata.name ?? '';
      ipam.occupy(owner.nodeNetworks(name), after === undefined ? [] : nodeNetworksOf(after));
    });
    // Between two lists of a watch there may be none: what was known then stays.
    apiServerSlices.subscribe(() => {
      const known = apiServerRanges(apiServerSlices.list());
      if (known.length > 0) ipam.occupy(owner.apiServers, known);
    });
  }

  return {
    ipam,
    tunnelIds,
    async ready(signal) {
      rebuilt ??= rebuild(signal);
      try {
        await rebuilt;
      } catch (error) {
        rebuilt = undefined;
        throw error;
      }
    },
  };
}

export const apiServerRanges = (slices: readonly EndpointSlice[]): readonly string[] =>
  slices.flatMap(({ endpoints }) =>
    (endpoints ?? []).flatMap(({ addresses }) => (addresses ?? []).map((address) => `${address}/32`)),
  );

function restoreIp(ipam: Ipam, ip: Ip): void {
  const { [networkLabel.networkName]: name, [networkLabel.networkNamespace]: namespace } = ip.metadata.labels ?? {};
  if (ip.status?.ip === undefined || name === undefined || namespace === undefined) return;
  ipam.grantAddress(owner.ip(keyOf(ip)), owner.network(`${namespace}/${name}`), ip.status.ip);
}
