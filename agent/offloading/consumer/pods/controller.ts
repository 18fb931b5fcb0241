/** Keeps the pods of one virtual node equal on both sides, as long as one connection to the provider lasts. */
import { OwnWrites } from '#kube/cache/own-writes.ts';
import type { ControllerMetrics } from '#kube/model/metrics.ts';
import type { Cache, Cluster, Controller, KubeApi } from '#kube/model/types.ts';
import { createController, watch } from '#kube/run/controller.ts';
import { keyOf, namespaceOfKey, type Pod, refOfKey } from '#shared/domain/kube-object.ts';
import { again, type Outcome, settled, waiting } from '#shared/domain/outcome.ts';
import type { Clock } from '#shared/ports/clock.ts';
import type { Log } from '#shared/ports/log.ts';
import type { ShadowPod } from '#shared/schema/liqo/shadow-pod.ts';
import { apply } from './apply.ts';
import { type Context, decide, type Mapping } from './decide.ts';
import type { RemoteNamespace } from './remote-namespaces.ts';

export interface OffloadedPodDeps {
  readonly local: Pick<Cluster, 'api' | 'events'>;
  readonly peer: KubeApi;
  /** Pods bound to this virtual node. */
  readonly localPods: Cache<Pod>;
  /** Undefined: nothing is known about this namespace yet. */
  readonly mapping: (namespace: string) => Mapping | undefined;
  readonly remote: (namespace: string) => RemoteNamespace | undefined;
  /** Follows the ShadowPods of what `remote` returns. */
  readonly written: OwnWrites<ShadowPod>;
  readonly nodeReady: () => boolean;
  /** For the pods of a namespace of this cluster. */
  readonly context: (namespace: string) => Omit<Context, 'now'>;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics?: ControllerMetrics;
  readonly workers?: number;
}

/** A pass is a write, mostly at the provider: as many wait at a time as 20 pods a second need that come and go where an answer takes a fifth of a second. */
const usualWorkers = 20;
/** What the cache does not show by then was deleted before its first list or event: only the clock can say so. */
const unseenMs = 10_000;

/** The ShadowPods that one session has written, over the caches of all its namespaces. */
export const writtenShadowPods = (clock: Clock): OwnWrites<ShadowPod> => new OwnWrites({ clock, lifetimeMs: unseenMs });

export function createOffloadedPodController(deps: OffloadedPodDeps): Controller {
  const { clock, localPods, written } = deps;
  const refused = new Map<string, number>();
  const refusals = {
    count(key: string): number {
      const count = (refused.get(key) ?? 0) + 1;
      refused.set(key, count);
      return count;
    },
    forget: (key: string): void => void refused.delete(key),
  };
  let noted: string | undefined;
  const creator = {
    get: () => noted,
    learn(as: string | undefined): void {
      noted = as;
    },
  };

  async function reconcile(key: string, signal: AbortSignal): Promise<Outcome> {
    const { namespace = '', name } = refOfKey(key);
    const local = localPods.get({ namespace, name });
    const followed = deps.remote(namespace);
    const mapping = deps.mapping(namespace);
    if (!mapping) return settled;
    if (followed && !followed.isSynced()) return waiting(`the first list of namespace ${followed.remote}`, 60_000);
    const at = { namespace: followed?.remote ?? '', name };
    const shadow = followed && written.get(followed.shadows, at);
    const remote = followed?.pods.get(at);
    if (!local) refused.delete(key);
    if (!local && !shadow) return settled;
    const context: Context = {
      ...deps.context(namespace),
      now: new Date(clock.now()).toISOString().replace(/\.\d+Z$/, 'Z'),
    };
    const actions = decide({ local, shadow, remote, mapping, nodeReady: deps.nodeReady() }, context);
    const subject = { key, local, shadow, remoteNamespace: followed?.remote, context };
    const outcome = await apply(actions, subject, { ...deps, creator, refusals }, signal);
    const isAhead = followed !== undefined && written.isAhead(followed.shadows, at);
    return outcome.kind === 'settled' && isAhead ? again(unseenMs) : outcome;
  }

  return createController(
    {
      name: 'offloaded-pod',
      watches: [watch(localPods, (pod) => [keyOf(pod)])],
      workers: deps.workers ?? usualWorkers,
      ownerOf: namespaceOfKey,
      reconcile,
    },
    deps,
  );
}
