/** The caches in which the broker's room sees the objects of peerings, and the view of one peering in them. */
import type { Cache, Caches } from '#kube/model/types.ts';
import { apiVersionOf, type KubeObject, type ResourceType, refOf } from '#shared/domain/kube-object.ts';
import { isthmusAnnotation, isthmusLabel } from '#shared/domain/liqo-keys.ts';
import type { ObservedObject } from '#shared/schema/protocol/agent-protocol.ts';
import { brokerKind, brokerKinds } from '../kinds/all.ts';
import { tenantNamespaceOf } from '../kinds/derived.ts';
import type { PeeringKey } from '../kinds/kind.ts';
import { observedObject } from './observed-objects.ts';
import type { LiveObject } from './plan.ts';

export const appliedHashAnnotation = 'isthmus.dev/applied-hash';

export interface ChannelCaches {
  readonly all: readonly Cache<KubeObject>[];
}

export const brokerCaches = (caches: Caches): ChannelCaches => ({
  all: brokerKinds.flatMap((kind) => kind.caches(caches)),
});

/** The object of this kind and name in the tenant namespace of the peer, as a cache has it. A kind may have several caches, by selector. */
export function objectOf(
  { all }: ChannelCaches,
  set: Pick<PeeringKey, 'peer'>,
  kind: string,
  name: string,
): KubeObject | undefined {
  const ref = { namespace: tenantNamespaceOf(set), name };
  for (const cache of all) {
    const found = cache.type.kind === kind ? cache.get(ref) : undefined;
    if (found !== undefined) return found;
  }
  return undefined;
}

export interface WatchedObjects {
  readonly live: readonly LiveObject[];
  readonly observed: readonly ObservedObject[];
}

/**
 * Everything of one peering in this cluster: applied for it, or derived from that by controllers. Derived objects name the peer and not the
 * peering: with `superseded`, they belong to a later peering with the same peer and are left out.
 */
export function watchedObjects({ all }: ChannelCaches, set: PeeringKey, superseded = false): WatchedObjects {
  const live: LiveObject[] = [];
  const observed: ObservedObject[] = [];
  for (const cache of all) {
    const { type } = cache;
    for (const object of cache.list()) {
      const isApplied = isAppliedFor(type, object, set);
      if (!isApplied && (superseded || !brokerKind(type.kind)?.isDerived(object, set))) continue;
      live.push(liveObject(type.kind, object));
      observed.push(observedObject(type.kind, apiVersionOf(type), object));
    }
  }
  return { live, observed };
}

/**
 * The label alone proves nothing: a guest may put it on Secrets of its namespaces, and a consumer on slices in its tenant namespace. What was applied is
 * where the peering has its objects, under a name that the broker may use.
 */
function isAppliedFor({ kind, namespaced }: ResourceType, { metadata }: KubeObject, set: PeeringKey): boolean {
  return (
    metadata.labels?.[isthmusLabel.peering] === set.peering &&
    (!namespaced || metadata.namespace === tenantNamespaceOf(set)) &&
    (brokerKind(kind)?.accepted?.names(set).includes(metadata.name) ?? true)
  );
}

function liveObject(kind: string, object: KubeObject): LiveObject {
  const peering = object.metadata.labels?.[isthmusLabel.peering];
  const appliedHash = object.metadata.annotations?.[appliedHashAnnotation];
  const ended = brokerKind(kind)?.isHome ? object.metadata.annotations?.[isthmusAnnotation.ended] : undefined;
  return {
    kind,
    ref: refOf(object),
    uid: object.metadata.uid ?? '',
    deleting: object.metadata.deletionTimestamp !== undefined,
    ...(peering === undefined ? {} : { peering }),
    ...(appliedHash === undefined ? {} : { appliedHash }),
    ...(ended === undefined ? {} : { ended }),
  };
}
