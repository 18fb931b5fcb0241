/** Follows our ShadowPods and their Pods at the provider, namespace by namespace, as namespaces come and go. */
import { type FollowedNamespace, NamespacedCaches } from '#kube/cache/namespaced-caches.ts';
import type { OwnWrites } from '#kube/cache/own-writes.ts';
import type { Cache, Caches, Change } from '#kube/model/types.ts';
import { pods } from '#shared/domain/core-kinds.ts';
import type { Pod } from '#shared/domain/kube-object.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import type { Log } from '#shared/ports/log.ts';
import { type ShadowPod, shadowPods } from '#shared/schema/liqo/shadow-pod.ts';
import { pruneRemotePod, pruneShadowPod } from './cache-transforms.ts';

interface RemoteCaches {
  readonly shadows: Cache<ShadowPod>;
  readonly pods: Cache<Pod>;
}

export type RemoteNamespace = FollowedNamespace<RemoteCaches>;
export type RemoteNamespaces = NamespacedCaches<RemoteCaches>;

export interface RemoteNamespacesDeps {
  readonly caches: Caches;
  readonly consumer: string;
  readonly provider: string;
  readonly nodeName: string;
  readonly log: Log;
  /** Follows the ShadowPods of all these namespaces. */
  readonly written: Pick<OwnWrites<ShadowPod>, 'follow'>;
  /** Something about this local pod (`namespace/name`) changed at the provider. */
  readonly onChange: (key: string) => void;
  /** Everything of this local namespace is worth a look: its caches are complete now, or gone. */
  readonly onNamespace: (namespace: string) => void;
}

/** All following ends with `signal`. */
export function remoteNamespaces(deps: RemoteNamespacesDeps, signal: AbortSignal): RemoteNamespaces {
  const { caches, consumer, provider, nodeName, log, written, onNamespace } = deps;
  const labelSelector = `${label.origin}=${consumer},${label.destination}=${provider},${label.nodeName}=${nodeName}`;
  const changed = (local: string, { before, after }: Change<ShadowPod> | Change<Pod>): void => {
    const object = after ?? before;
    if (object) deps.onChange(`${local}/${object.metadata.name}`);
  };
  return new NamespacedCaches<RemoteCaches>(
    {
      open(_, namespace, until) {
        const options = { namespace, labelSelector };
        const shadows = caches.scoped(shadowPods, { ...options, transform: pruneShadowPod }, until);
        // Before the subscription that queues the pod: a pass that an event causes finds that event heard.
        written.follow(shadows, until);
        return { shadows, pods: caches.scoped(pods, { ...options, transform: pruneRemotePod }, until) };
      },
      onChange: { shadows: changed, pods: changed },
      onSynced: ({ local }) => onNamespace(local),
      onDropped: onNamespace,
      log,
    },
    signal,
  );
}
