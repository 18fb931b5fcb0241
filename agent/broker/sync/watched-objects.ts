/** The caches through which the channel sees the objects of peerings, and the view of one peering in them. */
import { withinBounds } from '#agent/model/peering-selections.ts';
import type { Cache, Caches } from '#kube/model/types.ts';
import { namespaces, nodes, secrets } from '#shared/domain/core-kinds.ts';
import { apiVersionOf, type KubeObject, refOf, type Secret } from '#shared/domain/kube-object.ts';
import { annotation, isthmusAnnotation, isthmusLabel, label, virtualNodeType } from '#shared/domain/liqo-keys.ts';
import { gatewayKeys, networkLabel, networkName } from '#shared/domain/network-keys.ts';
import { identities } from '#shared/schema/liqo/identity.ts';
import { namespaceMaps } from '#shared/schema/liqo/namespace-map.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import { resourceSlices } from '#shared/schema/liqo/resource-slice.ts';
import { tenants } from '#shared/schema/liqo/tenant.ts';
import { virtualNodes } from '#shared/schema/liqo/virtual-node.ts';
import type { DesiredSet, ObservedObject } from '#shared/schema/protocol/agent-protocol.ts';
import { observedObject } from '../kinds/observed-kinds.ts';
import { derivedLabels, type LiveObject, tenantNamespaceOf } from './plan.ts';

export const appliedHashAnnotation = 'isthmus.dev/applied-hash';

export interface ChannelCaches {
  /** Kinds that a broker may apply, and kinds derived from those, in takedown terms. */
  readonly all: readonly Cache<KubeObject>[];
}

export function channelCaches(caches: Caches): ChannelCaches {
  const all = [
    // Tenant namespaces, and those mapped for consumers.
    caches.cache(namespaces, { labelSelector: label.remoteClusterId }),
    caches.cache(secrets, { labelSelector: isthmusLabel.peering, transform: withinBounds }),
    caches.cache(tenants),
    caches.cache(identities),
    caches.cache(resourceSlices),
    caches.cache(namespaceMaps),
    caches.cache(virtualNodes),
    caches.cache(networkKinds.configurations),
    caches.cache(networkKinds.gatewayServers),
    caches.cache(networkKinds.gatewayClients),
    caches.cache(networkKinds.publicKeys),
    caches.cache(networkKinds.connections),
    caches.cache(secrets, { labelSelector: `${networkLabel.gatewayResource}=true`, transform: publicPart }),
    caches.cache(nodes, { labelSelector: `${label.type}=${virtualNodeType}` }),
  ];
  return { all: all as unknown as readonly Cache<KubeObject>[] };
}

/** The private key of a gateway is none of the channel's business, not even in memory. */
function publicPart(secret: Secret): Secret {
  const publicKey = withinBounds(secret).data?.[gatewayKeys.publicKey];
  return { ...secret, data: publicKey === undefined ? {} : { [gatewayKeys.publicKey]: publicKey } };
}

export interface WatchedObjects {
  readonly live: readonly LiveObject[];
  readonly observed: readonly ObservedObject[];
}

type SetKey = Pick<DesiredSet, 'peering' | 'role' | 'peer' | 'state'>;

/**
 * Everything of one peering in this cluster: applied for it, or derived from that by controllers. Derived objects name the peer and not the
 * peering: with `superseded`, they belong to a later peering with the same peer and are left out.
 */
export function watchedObjects({ all }: ChannelCaches, set: SetKey, superseded = false): WatchedObjects {
  const live: LiveObject[] = [];
  const observed: ObservedObject[] = [];
  for (const cache of all) {
    for (const object of cache.list()) {
      const mine = object.metadata.labels?.[isthmusLabel.peering] === set.peering;
      if (!mine && (superseded || !derivedFrom(cache.type.kind, object, set))) continue;
      live.push(liveObject(cache.type.kind, object));
      observed.push(observedObject(cache.type.kind, apiVersionOf(cache.type), object));
    }
  }
  return { live, observed };
}

function derivedFrom(kind: string, object: KubeObject, set: SetKey): boolean {
  const labels = object.metadata.labels ?? {};
  const namespace = tenantNamespaceOf(set);
  if (kind === 'Namespace') return object.metadata.name === namespace || wasMapped(object, set);
  if (kind === 'VirtualNode' || kind === 'Node')
    return set.role === 'consumer' && labels[label.remoteClusterId] === set.peer;
  if (kind === 'ResourceSlice' || kind === 'NamespaceMap') {
    return (
      object.metadata.namespace === namespace &&
      Object.entries(derivedLabels(set)).every(([key, value]) => labels[key] === value)
    );
  }
  if (kind === 'Identity')
    return (
      set.role === 'consumer' && object.metadata.namespace === namespace && labels[label.remoteClusterId] === set.peer
    );
  if (kind === 'Connection' || kind === 'Secret')
    return object.metadata.namespace === namespace && object.metadata.name === networkName.gateway(set.peer);
  if (linkKinds.has(kind)) return object.metadata.namespace === namespace && labels[label.remoteClusterId] === set.peer;
  return false;
}

const linkKinds: ReadonlySet<string> = new Set(['Configuration', 'GatewayServer', 'GatewayClient', 'PublicKey']);

/** At a provider: given to the consumer of a peering that ends. While it lasts, they are the two clusters' own affair. */
function wasMapped({ metadata }: KubeObject, set: SetKey): boolean {
  if (set.role !== 'provider' || set.state !== 'absent') return false;
  const map = metadata.annotations?.[annotation.managedByNamespaceMap];
  return metadata.labels?.[label.remoteClusterId] === set.peer && (map ?? '').startsWith(`${tenantNamespaceOf(set)}/`);
}

function liveObject(kind: string, object: KubeObject): LiveObject {
  const peering = object.metadata.labels?.[isthmusLabel.peering];
  const appliedHash = object.metadata.annotations?.[appliedHashAnnotation];
  const ended = kind === 'Namespace' ? object.metadata.annotations?.[isthmusAnnotation.ended] : undefined;
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
