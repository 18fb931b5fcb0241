/**
 * Which addresses may open a connection to the webhooks. With host networking, every client that reaches the node reaches its ports. Where the API
 * server runs on that same node, it calls from one of the node's own addresses, and all other callers are refused.
 */
import { networkInterfaces } from 'node:os';
import type { Caches } from '#kube/model/types.ts';
import { endpointSlices } from '#shared/domain/core-kinds.ts';
import { unmapped } from '#shared/domain/socket-address.ts';

export type MayCall = (address: string | undefined) => boolean;

/** The Service by which every cluster finds its API servers; they keep its endpoints themselves. */
const apiServers = { namespace: 'default', labelSelector: 'kubernetes.io/service-name=kubernetes' } as const;

/** Follows the addresses of the API servers. Until they are known, every caller is allowed. */
export function callersOfNode(caches: Caches): MayCall {
  const slices = caches.cache(endpointSlices, apiServers);
  return (address) =>
    mayCall(
      address,
      slices.list().flatMap((slice) => (slice.endpoints ?? []).flatMap(({ addresses }) => addresses ?? [])),
      ownAddresses(),
    );
}

export function mayCall(
  address: string | undefined,
  apiServerAddresses: readonly string[],
  own: ReadonlySet<string>,
): boolean {
  const areHere = apiServerAddresses.length > 0 && apiServerAddresses.every((one) => own.has(one));
  return !areHere || (address !== undefined && own.has(unmapped(address)));
}

const ownAddresses = (): Set<string> =>
  new Set(Object.values(networkInterfaces()).flatMap((of) => (of ?? []).map(({ address }) => address)));
