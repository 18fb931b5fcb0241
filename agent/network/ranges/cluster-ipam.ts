/** The one IPAM of the controllers: rebuilt from the API server before its first use, and told of node changes from then on. */
import type { Cache, Cluster } from '#kube/model/types.ts';
import { nodes } from '#shared/domain/core-kinds.ts';
import { type KubeObject, keyOf, type Node } from '#shared/domain/kube-object.ts';
import { isthmusNetworkAnnotation, networkAnnotation, networkLabel, networkType } from '#shared/domain/network-keys.ts';
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

export const requestOf = (network: Network) => ({
  owner: owner.network(keyOf(network)),
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

export function nodeRanges({ spec, status }: Node): readonly string[] {
  const addresses = status?.addresses ?? [];
  const own = addresses.filter(({ type }) => type === 'InternalIP' || type === 'ExternalIP');
  return [...own.map(({ address }) => `${address}/32`), ...(spec?.podCIDRs ?? (spec?.podCIDR ? [spec.podCIDR] : []))];
}

export function createNetworkIpam({ api }: Cluster, hosts: Cache<Node>): NetworkIpam {
  const ipam = new Ipam();
  const tunnelIds = new Map<number, string>();
  let rebuilt: Promise<void> | undefined;

  async function rebuild(signal: AbortSignal): Promise<void> {
    // From the API server itself: a cache may lag behind what the leader before this one wrote last.
    const [networks, ips, internalNodes, fabrics, all] = await Promise.all([
      api.list(networkKinds.networks, {}, signal),
      api.list(networkKinds.ips, {}, signal),
      api.list(networkKinds.internalNodes, {}, signal),
      api.list(networkKinds.internalFabrics, {}, signal),
      api.list(nodes, {}, signal),
    ]);
    const inOrder = reservationOrder(networks);
    for (const network of inOrder.filter(({ status }) => status?.cidr !== undefined))
      ipam.grantPrefix(requestOf(network));
    for (const node of all) ipam.occupy(owner.host(node.metadata.name), nodeRanges(node));
    for (const network of inOrder) ipam.grantPrefix(requestOf(network));
    const internal = networkOfType(networks, networkType.internal);
    const from = internal && owner.network(keyOf(internal));
    for (const ip of ips) restoreIp(ipam, ip);
    if (from) {
      for (const one of internalNodes)
        ipam.grantAddress(owner.node(one.metadata.name), from, one.spec.interface.node.ip);
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

function restoreIp(ipam: Ipam, ip: Ip): void {
  const { [networkLabel.networkName]: name, [networkLabel.networkNamespace]: namespace } = ip.metadata.labels ?? {};
  if (ip.status?.ip === undefined || name === undefined || namespace === undefined) return;
  ipam.grantAddress(owner.ip(keyOf(ip)), owner.network(`${namespace}/${name}`), ip.status.ip);
}
