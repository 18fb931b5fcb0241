/** Keeps the pods of one virtual node equal on both sides, as long as one connection to the provider lasts. */
import type { Cache, Cluster, Controller, KubeApi } from '#kube/model/types.ts';
import { type ControllerMetrics, createController, watch } from '#kube/run/controller.ts';
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
  readonly nodeReady: () => boolean;
  readonly context: () => Omit<Context, 'now'>;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics?: ControllerMetrics;
  readonly workers?: number;
}

/** A pass is a write, mostly at the provider: as many wait at a time as 20 pods a second need that come and go where an answer takes a fifth of a second. */
const usualWorkers = 20;
/** How long a ShadowPod that we made may be missing from our cache. */
const expectationMs = 10_000;

export function createOffloadedPodController(deps: OffloadedPodDeps): Controller {
  const { clock, localPods } = deps;
  const expected = new Map<string, { readonly shadow: ShadowPod; readonly until: number }>();
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
  const expect = (key: string, shadow: ShadowPod): void =>
    void expected.set(key, { shadow, until: clock.now() + expectationMs });

  /** Our own creation counts until the cache has shown the object, or enough time has passed for it to be gone again. */
  function shadowOf(key: string, namespace: RemoteNamespace | undefined, name: string): ShadowPod | undefined {
    const cached = namespace?.shadows.get({ namespace: namespace.remote, name });
    const own = expected.get(key);
    if (!own) return cached;
    if (cached || own.until <= clock.now()) {
      expected.delete(key);
      return cached;
    }
    return own.shadow;
  }

  async function reconcile(key: string, signal: AbortSignal): Promise<Outcome> {
    const { namespace = '', name } = refOfKey(key);
    const local = localPods.get({ namespace, name });
    const followed = deps.remote(namespace);
    const mapping = deps.mapping(namespace);
    if (!mapping) return settled;
    if (followed && !followed.isSynced()) return waiting(`the first list of namespace ${followed.remote}`, 60_000);
    const shadow = shadowOf(key, followed, name);
    const remote = followed?.pods.get({ namespace: followed.remote, name });
    if (!local) refused.delete(key);
    if (!local && !shadow) return settled;
    const context: Context = { ...deps.context(), now: new Date(clock.now()).toISOString().replace(/\.\d+Z$/, 'Z') };
    const actions = decide({ local, shadow, remote, mapping, nodeReady: deps.nodeReady() }, context);
    const subject = { key, local, shadow, remoteNamespace: followed?.remote, context };
    const outcome = await apply(actions, subject, { ...deps, expect, creator, refusals }, signal);
    // What the cache never shows was deleted before anybody looked: then only the clock says so.
    return outcome.kind === 'settled' && expected.has(key) ? again(expectationMs) : outcome;
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
