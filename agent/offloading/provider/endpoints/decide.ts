/**
 * Which EndpointSlice a ShadowEndpointSlice comes to at the provider (docs/design/offloading.md#what-becomes-of-endpoints-at-the-provider): addresses in this cluster's view of their
 * owner, ready only while the consumer can be reached. Nothing that the consumer wrote is believed: it may name only addresses of its ranges. Pure.
 */
import { type RemoteRanges, takenBy } from '#agent/network/addresses/remote-address.ts';
import { viewOfPeer } from '#agent/network/addresses/view-of-peer.ts';
import { sliceManager, sliceManagerLabel } from '#agent/reflection/kinds/endpoint-slice.ts';
import { fingerprint } from '#agent/reflection/model/digests.ts';
import { lastApplied, without } from '#agent/reflection/model/metadata.ts';
import { covers } from '#kube/writes/write-if-changed.ts';
import { contains } from '#shared/domain/cidr.ts';
import type { EndpointSlice } from '#shared/domain/core-kinds.ts';
import { apiVersionOf, type ObjectMeta } from '#shared/domain/kube-object.ts';
import { isthmusAnnotation, label } from '#shared/domain/liqo-keys.ts';
import { networkAnnotation } from '#shared/domain/network-keys.ts';
import type { Configuration } from '#shared/schema/liqo/configuration.ts';
import type { ForeignCluster } from '#shared/schema/liqo/foreign-cluster.ts';
import { type ShadowEndpointSlice, shadowEndpointSlices } from '#shared/schema/liqo/shadow-endpoint-slice.ts';

type Endpoint = NonNullable<EndpointSlice['endpoints']>[number];

export const managedByShadowSlice = 'shadowendpointslice';

export interface Observed {
  readonly shadow?: ShadowEndpointSlice | undefined;
  readonly slice?: EndpointSlice | undefined;
  /** The consumer for which a NamespaceMap made the namespace. */
  readonly namespaceOrigin?: string | undefined;
  readonly foreign?: ForeignCluster | undefined;
  /** Ranges of a peer; undefined: there is no link to it. */
  readonly configuration: (peer: string) => Configuration | undefined;
  /** What means something else in this cluster, where there is no link to the origin. */
  readonly unlinked: RemoteRanges;
  /** Where there is no link: the ranges that a policy of this cluster names as those of the origin. */
  readonly named: readonly string[];
  /** Peers that a policy lets guests of the origin reach without passing through it. */
  readonly directPeers: readonly string[];
}

export type Decision =
  | { readonly do: 'nothing' }
  | { readonly do: 'apply'; readonly slice: EndpointSlice; readonly isNew: boolean; readonly dropped?: string }
  /** Delete; what is wanted is made when this one is gone. */
  | { readonly do: 'delete'; readonly uid: string }
  | { readonly do: 'refuse'; readonly message: string }
  | { readonly do: 'wait'; readonly on: string };

const nothing: Decision = { do: 'nothing' };

export const originOf = ({ metadata }: ShadowEndpointSlice): string => metadata.labels?.[label.origin] ?? '';

export function decide(observed: Observed): Decision {
  const { shadow, slice, namespaceOrigin } = observed;
  if (!shadow) return slice && isMade(slice) ? { do: 'delete', uid: slice.metadata.uid ?? '' } : nothing;
  if (shadow.metadata.deletionTimestamp !== undefined || slice?.metadata.deletionTimestamp !== undefined)
    return nothing;
  const { namespace, name } = shadow.metadata;
  const origin = originOf(shadow);
  if (origin === '' || origin !== namespaceOrigin) {
    const owner = namespaceOrigin === undefined ? 'no consumer' : `consumer ${namespaceOrigin}`;
    return {
      do: 'refuse',
      message: `label ${label.origin} is ${JSON.stringify(origin)}, and namespace ${namespace} belongs to ${owner}`,
    };
  }
  if (slice && !isMade(slice)) {
    return { do: 'refuse', message: `EndpointSlice ${namespace}/${name} is not made of this object and is left alone` };
  }
  if (slice && ownerUid(slice) !== shadow.metadata.uid) return { do: 'delete', uid: slice.metadata.uid ?? '' };
  return wanted(shadow, slice, origin, observed);
}

const isMade = (slice: EndpointSlice): boolean =>
  slice.metadata.labels?.[label.managedBy] === managedByShadowSlice && ownerUid(slice) !== undefined;

/** '' is a slice of ours without an owner: a deletion that asks for dependents to stay leaves it behind, and no controller would keep its addresses true. */
function ownerUid({ metadata }: EndpointSlice): string | undefined {
  const controller = metadata.ownerReferences?.find((owner) => owner.controller);
  if (controller) return controller.kind === shadowEndpointSlices.kind ? controller.uid : undefined;
  return metadata.annotations?.[isthmusAnnotation.reflected] === undefined ? undefined : '';
}

/** False: traffic to the consumer's addresses would be lost. */
export function isReachable(foreign: ForeignCluster | undefined): boolean {
  const networking = foreign?.status?.modules.networking;
  const link = networking?.conditions?.find(({ type }) => type === 'NetworkConnectionStatus')?.status;
  const server = foreign?.status?.conditions?.find(({ type }) => type === 'APIServerStatus')?.status;
  const isUp = !networking?.enabled || link === 'Established';
  return foreign !== undefined && isUp && (server === undefined || server === 'None' || server === 'Established');
}

function wanted(
  shadow: ShadowEndpointSlice,
  slice: EndpointSlice | undefined,
  origin: string,
  observed: Observed,
): Decision {
  const { foreign, configuration } = observed;
  const isLinked = foreign?.status?.modules.networking.enabled ?? false;
  if (isLinked && configuration(origin)?.status?.remote === undefined)
    return { do: 'wait', on: `the ranges of cluster ${origin}` };
  const template = shadow.spec.template ?? {};
  // Names lead out of the cluster and IPv6 crosses no link: of neither is it known whose the other end is.
  if (template.addressType !== 'IPv4') {
    if (slice) return { do: 'delete', uid: slice.metadata.uid ?? '' };
    const found = template.addressType ?? 'absent';
    return { do: 'refuse', message: `spec.template.addressType is ${found}: accepted is IPv4` };
  }
  const direct = directAddresses(shadow);
  const reachable = isReachable(foreign);
  const dropped: string[] = [];
  const endpoints = (template.endpoints ?? []).flatMap((endpoint): Endpoint[] => {
    const addresses = viewOf(endpoint.addresses, origin, direct, observed);
    if (!addresses) dropped.push(...endpoint.addresses);
    return addresses
      ? [{ ...endpoint, addresses, conditions: { ready: endpoint.conditions?.ready !== false && reachable } }]
      : [];
  });
  const made = forge(shadow, endpoints);
  if (slice && slice.addressType !== made.addressType) return { do: 'delete', uid: slice.metadata.uid ?? '' };
  const stamp = made.metadata.annotations?.[isthmusAnnotation.reflected];
  if (slice?.metadata.annotations?.[isthmusAnnotation.reflected] === stamp && covers(slice, made)) return nothing;
  const why = dropped.length ? { dropped: droppedText(dropped, origin, configuration(origin) !== undefined) } : {};
  return { do: 'apply', slice: made, isNew: slice === undefined, ...why };
}

const droppedText = (addresses: readonly string[], origin: string, isLinked: boolean): string =>
  `left out: ${addresses.slice(0, 5).join(', ')}${addresses.length > 5 ? ` and ${addresses.length - 5} more` : ''}; ${isLinked ? acceptedText(origin) : unlinkedText(origin)}`;

const unlinkedText = (origin: string): string =>
  `there is no link to cluster ${origin}: accepted are addresses that nothing in this cluster has, of ranges that spec.network.remoteCidrs of a PeeringPolicy names for it; or peer with a network`;

const acceptedText = (origin: string): string =>
  `accepted are addresses in the ranges of cluster ${origin}, and direct ones of linked clusters that guests.networkPeers of a PeeringPolicy names`;

/** Address to the cluster that it belongs to, for those that do not go through the consumer. */
function directAddresses({ metadata }: ShadowEndpointSlice): ReadonlyMap<string, string> {
  const text = metadata.annotations?.[networkAnnotation.directConnectionsData];
  try {
    const { clusterAddresses } = JSON.parse(text ?? '{}') as { clusterAddresses?: Record<string, string[]> };
    return new Map(
      Object.entries(clusterAddresses ?? {}).flatMap(([peer, all]) => all.map((one) => [one, peer] as const)),
    );
  } catch {
    return new Map();
  }
}

/** Undefined: not all of them have a meaning here. */
function viewOf(
  addresses: readonly string[],
  origin: string,
  direct: ReadonlyMap<string, string>,
  { configuration, directPeers, unlinked, named }: Observed,
): string[] | undefined {
  const views = addresses.map((address) => {
    const peer = direct.get(address);
    if (peer !== undefined) return directPeers.includes(peer) ? translated(address, configuration(peer)) : undefined;
    return translated(address, configuration(origin), { taken: unlinked, named });
  });
  return views.every((view) => view !== undefined) ? views : undefined;
}

/**
 * `unlinked`: where there is no link, an address stays what it is if a policy says that it is the peer's, and nothing here has it. Absent: only a link
 * will do.
 */
function translated(
  address: string,
  configuration: Configuration | undefined,
  unlinked?: { readonly taken: RemoteRanges; readonly named: readonly string[] },
): string | undefined {
  if (configuration) return viewOfPeer(address, configuration);
  const isNamed = unlinked?.named.some((range) => contains(range, address)) ?? false;
  return unlinked && isNamed && takenBy(unlinked.taken, address) === undefined ? address : undefined;
}

function forge(shadow: ShadowEndpointSlice, endpoints: Endpoint[]): EndpointSlice {
  const { name, namespace = '', labels, annotations, uid = '' } = shadow.metadata;
  const { template } = shadow.spec;
  const metadata: ObjectMeta = {
    name,
    namespace,
    labels: {
      ...labels,
      [label.managed]: 'true',
      [label.managedBy]: managedByShadowSlice,
      [sliceManagerLabel]: sliceManager,
    },
    annotations: without(annotations, [
      lastApplied,
      networkAnnotation.directConnectionsData,
      isthmusAnnotation.reflected,
    ]),
    ownerReferences: [
      {
        apiVersion: apiVersionOf(shadowEndpointSlices),
        kind: shadowEndpointSlices.kind,
        name,
        uid,
        controller: true,
        blockOwnerDeletion: true,
      },
    ],
  };
  const slice = {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata,
    addressType: 'IPv4',
    endpoints,
    ...(template?.ports ? { ports: template.ports } : {}),
  } as EndpointSlice;
  const stamp = { ...metadata.annotations, [isthmusAnnotation.reflected]: fingerprint(slice) };
  return { ...slice, metadata: { ...metadata, annotations: stamp } };
}
