/** What the replicator looks at in its own cluster, and the keys of the work that follows from it. */
import { isPeerDead } from '#agent/model/dead-peers.ts';
import { peerOf, peerSecrets, tenantNamespaces } from '#agent/model/peering-selections.ts';
import { isOriginal, providerOf } from '#agent/model/slice-roles.ts';
import type { Cache } from '#kube/model/types.ts';
import { type KubeObject, keyOf, type Namespace, type ResourceType, type Secret } from '#shared/domain/kube-object.ts';
import { finalizer } from '#shared/domain/liqo-keys.ts';
import { type ForeignCluster, foreignClusters } from '#shared/schema/liqo/foreign-cluster.ts';
import { type VirtualNode, virtualNodes } from '#shared/schema/liqo/virtual-node.ts';
import type { PeeringDeps } from '../model/deps.ts';
import { createLinkView, type LinkView } from './link.ts';
import type { Replicated } from './replica.ts';
import { isControlPlane, replicatedKinds } from './sessions.ts';

export const secretPrefix = 'secret';
export const linkPrefix = 'link';
export const keyFor = (prefix: string, key: string): string => `${prefix}|${key}`;

export interface ReplicatorView {
  readonly secrets: Cache<Secret>;
  readonly namespaces: Cache<Namespace>;
  readonly clusters: Cache<ForeignCluster>;
  readonly nodes: Cache<VirtualNode>;
  readonly link: LinkView;
  originals(type: ResourceType<Replicated>): Cache<Replicated>;
  originalsOf(peer: string): readonly { readonly type: ResourceType<Replicated>; readonly object: Replicated }[];
  /** Control-plane credentials, in that namespace. */
  credentialsFor(provider: string, namespace: string): Secret | undefined;
  isDead(peer: string): boolean;
  /** Its credentials, and everything that is copied to it. */
  keysOfPeer(peer: string): string[];
  /** A link matters only to credentials that go. Their connection has a key of its own: other passes may be held up in requests over it. */
  keysOfLink(object: KubeObject): string[];
  /** Its own key, and the credentials that wait for it to go. */
  keysOfOriginal(type: ResourceType<Replicated>, object: Replicated): string[];
}

const isEnding = ({ metadata }: KubeObject): boolean => metadata.deletionTimestamp !== undefined;

export function createReplicatorView({ cluster: { caches } }: PeeringDeps): ReplicatorView {
  const secrets = peerSecrets(caches);
  const clusters = caches.cache(foreignClusters);
  const originals = new Map<string, Cache<Replicated>>(
    replicatedKinds.map((type) => [type.plural, caches.cache(type)]),
  );
  const credentials = (): Secret[] => secrets.list().filter(isControlPlane);
  const keyOfSecret = (secret: Secret): string => keyFor(secretPrefix, keyOf(secret));

  const view: ReplicatorView = {
    secrets,
    namespaces: tenantNamespaces(caches),
    clusters,
    nodes: caches.cache(virtualNodes),
    link: createLinkView(caches),
    originals(type) {
      const cache = originals.get(type.plural);
      if (cache === undefined) throw new RangeError(`${type.kind} is not replicated`);
      return cache;
    },
    originalsOf: (peer) =>
      replicatedKinds.flatMap((type) =>
        view
          .originals(type)
          .list()
          .filter((object) => isOriginal(object) && providerOf(object) === peer)
          .map((object) => ({ type, object })),
      ),
    credentialsFor: (provider, namespace) =>
      credentials().find((one) => one.metadata.namespace === namespace && peerOf(one) === provider),
    isDead: (peer) => isPeerDead(clusters.list(), peer),
    keysOfPeer: (peer) => [
      ...credentials()
        .filter((secret) => peerOf(secret) === peer)
        .map(keyOfSecret),
      ...view.originalsOf(peer).map(({ type, object }) => keyFor(type.plural, keyOf(object))),
    ],
    keysOfLink(object) {
      const peer = peerOf(object) ?? '';
      const ending = credentials().filter((secret) => isEnding(secret) && peerOf(secret) === peer);
      if (ending.length === 0) return [];
      return [...ending.map((secret) => keyFor(linkPrefix, keyOf(secret))), ...view.keysOfPeer(peer)];
    },
    keysOfOriginal(type, object) {
      const isHeld = object.metadata.finalizers?.includes(finalizer.replicatorResource) ?? false;
      if (!isOriginal(object) && !isHeld) return [];
      const waiting = credentials().filter(
        (secret) => isEnding(secret) && secret.metadata.namespace === object.metadata.namespace,
      );
      return [keyFor(type.plural, keyOf(object)), ...waiting.map(keyOfSecret)];
    },
  };
  return view;
}
