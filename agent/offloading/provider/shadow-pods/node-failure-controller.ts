/**
 * Provider: pods of guests that are being deleted on a node that is dead never end, since no kubelet ends them. After a delay they are deleted
 * by force, so that their ShadowPods get another pod elsewhere. Off unless a delay is given: a node that only looks dead may still run them.
 */
import { ownNodes } from '#agent/model/peering-selections.ts';
import type { Cluster, Controller } from '#kube/model/types.ts';
import { type ControllerDeps, createController, watch } from '#kube/run/controller.ts';
import { pods } from '#shared/domain/core-kinds.ts';
import { keyOf, type Node, type Pod, refOf, refOfKey } from '#shared/domain/kube-object.ts';
import { again, settled } from '#shared/domain/outcome.ts';
import { offloadedPodCache } from '../model/caches.ts';
import { ownerUid } from '../model/pod-owner.ts';

export interface NodeFailureDeps extends ControllerDeps {
  readonly cluster: Cluster;
  /** Since both the node was last Ready and the pod should have ended. */
  readonly delayMs: number;
}

/** When the pod is to be deleted by force, in ms since the epoch; undefined: not at all, as things are. Pure. */
export function forcedAt(pod: Pod, node: Node | undefined, delayMs: number): number | undefined {
  const { deletionTimestamp } = pod.metadata;
  if (deletionTimestamp === undefined || ownerUid(pod) === undefined || node === undefined) return undefined;
  const ready = node.status?.conditions?.find(({ type }) => type === 'Ready');
  if (ready === undefined || ready.status === 'True') return undefined;
  const since = Math.max(Date.parse(deletionTimestamp), Date.parse(String(ready.lastTransitionTime ?? '')) || 0);
  return since + delayMs;
}

export function createNodeFailureController(deps: NodeFailureDeps): Controller {
  const { cluster, clock, delayMs } = deps;
  const cache = offloadedPodCache(cluster.caches);
  const nodes = ownNodes(cluster.caches);
  return createController(
    {
      name: 'node-failure',
      watches: [
        watch(cache, (pod) => (pod.metadata.deletionTimestamp === undefined ? [] : [keyOf(pod)])),
        watch(nodes, ({ metadata }) =>
          cache
            .list()
            .filter((pod) => pod.metadata.deletionTimestamp !== undefined && pod.spec?.nodeName === metadata.name)
            .map(keyOf),
        ),
      ],
      async reconcile(key, signal) {
        const pod = cache.get(refOfKey(key));
        if (pod === undefined) return settled;
        const node = nodes.get({ name: pod.spec?.nodeName ?? '' });
        const at = forcedAt(pod, node, delayMs);
        if (at === undefined) return settled;
        if (at > clock.now()) return again(at - clock.now());
        const { uid } = pod.metadata;
        await cluster.api.delete(pods, refOf(pod), { gracePeriodSeconds: 0, ...(uid && { uid }) }, signal);
        const message = `node ${node?.metadata.name} is not ready: the pod was deleted without waiting for it`;
        cluster.events.emit(pod, 'Warning', 'NodeFailure', message);
        return settled;
      },
    },
    deps,
  );
}
