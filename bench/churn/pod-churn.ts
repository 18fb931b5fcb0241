/** What becomes of pods that are made at a steady rate and deleted a while after, as seen from both clusters. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Cache } from '#kube/model/types.ts';
import { pods as podKind } from '#shared/domain/core-kinds.ts';
import type { KubeObject, Pod } from '#shared/domain/kube-object.ts';
import { shadowPods } from '#shared/schema/liqo/shadow-pod.ts';
import {
  clusterOf,
  offloaded,
  podSpec,
  remoteNamespace,
  type ScaleClusters,
  type Where,
} from '../scale/scale-clusters.ts';

/** Each is when it was seen first, in ms; what was never seen is missing. */
export interface PodLifecycle {
  readonly madeAt: number;
  boundAt?: number;
  shadowAt?: number;
  remoteAt?: number;
  remoteBoundAt?: number;
  remoteReadyAt?: number;
  readyAt?: number;
  deletedAt?: number;
  shadowGoneAt?: number;
  remoteGoneAt?: number;
  goneAt?: number;
}

export interface ChurnOptions {
  readonly seconds: number;
  readonly perSecond: number;
  readonly log: (line: string) => void;
}

export const lifeMs = 20_000;
/** The last pods get so long to become Ready and to go. */
const tailMs = 60_000;
/** Of so many pods one is watched at the provider, too: watching all of them would be a load of its own. */
const tracedOneIn = 20;
const tracedLabel = 'bench.isthmus.dev/traced';

export async function churn(
  clusters: ScaleClusters,
  where: Where,
  options: ChurnOptions,
): Promise<readonly PodLifecycle[]> {
  const { seconds, perSecond, log } = options;
  const { api, caches } = clusterOf(clusters, where);
  const lifecycles = new Map<string, PodLifecycle>();
  const stop = new AbortController();
  const known = caches.scoped(podKind, { namespace: where }, stop.signal);
  follow(known, lifecycles, (lifecycle, pod) => {
    if (pod === undefined) lifecycle.goneAt ??= performance.now();
    else {
      if (pod.spec?.nodeName !== undefined) lifecycle.boundAt ??= performance.now();
      if (isReady(pod)) lifecycle.readyAt ??= performance.now();
    }
  });
  await known.synced();
  if (where === offloaded) await followRemote(clusters, lifecycles, stop.signal);
  const failures: unknown[] = [];
  const note = (error: unknown): void => void failures.push(error);
  const begun = performance.now();
  const count = seconds * perSecond;
  const dying: { readonly name: string; readonly at: number }[] = [];
  const end = (name: string): void => {
    const lifecycle = lifecycles.get(name);
    if (lifecycle) lifecycle.deletedAt = performance.now();
    api.delete(podKind, { namespace: where, name }).catch(note);
  };
  for (let i = 0; i < count; i++) {
    const at = begun + (i * 1_000) / perSecond;
    if (at > performance.now()) await delay(at - performance.now());
    const name = `pod-${i}`;
    lifecycles.set(name, { madeAt: performance.now() });
    api.create(podKind, newPod(where, name, i % tracedOneIn === 0), { answer: 'metadata' }).catch(note);
    dying.push({ name, at: at + lifeMs });
    while (dying[0] !== undefined && dying[0].at <= performance.now()) end(dying.shift()?.name ?? '');
    if (i % (perSecond * 30) === 0) log(`${where}: ${i} of ${count} pods made, ${known.list().length} there`);
  }
  for (const { name, at } of dying) {
    if (at > performance.now()) await delay(at - performance.now());
    end(name);
  }
  const deadline = performance.now() + tailMs;
  while (known.list().length > 0 && performance.now() < deadline) await delay(250);
  stop.abort();
  if (failures.length > 0)
    throw new Error(`${failures.length} requests of the bench failed, the first: ${failures[0]}`);
  return [...lifecycles.values()];
}

const newPod = (where: Where, name: string, traced: boolean): Pod =>
  ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { namespace: where, name, labels: { app: 'churn', ...(traced && { [tracedLabel]: 'true' }) } },
    spec: podSpec(where),
  }) as Pod;

const isReady = ({ status }: Pod): boolean =>
  status?.conditions?.some((condition) => condition.type === 'Ready' && condition.status === 'True') ?? false;

async function followRemote(
  { provider }: ScaleClusters,
  lifecycles: ReadonlyMap<string, PodLifecycle>,
  signal: AbortSignal,
) {
  const options = { namespace: remoteNamespace, labelSelector: `${tracedLabel}=true` };
  const shadows = provider.caches.scoped(shadowPods, options, signal);
  follow(shadows, lifecycles, (lifecycle, shadow) => {
    if (shadow) lifecycle.shadowAt ??= performance.now();
    else lifecycle.shadowGoneAt ??= performance.now();
  });
  const remotes = provider.caches.scoped(podKind, options, signal);
  follow(remotes, lifecycles, (lifecycle, pod) => {
    if (pod === undefined) {
      lifecycle.remoteGoneAt ??= performance.now();
      return;
    }
    lifecycle.remoteAt ??= performance.now();
    if (pod.spec?.nodeName !== undefined) lifecycle.remoteBoundAt ??= performance.now();
    if (isReady(pod)) lifecycle.remoteReadyAt ??= performance.now();
  });
  await Promise.all([shadows.synced(), remotes.synced()]);
}

function follow<T extends KubeObject>(
  cache: Cache<T>,
  lifecycles: ReadonlyMap<string, PodLifecycle>,
  seen: (lifecycle: PodLifecycle, object: T | undefined) => void,
): void {
  cache.subscribe(({ before, after }) => {
    const lifecycle = lifecycles.get((after ?? before)?.metadata.name ?? '');
    if (lifecycle) seen(lifecycle, after);
  });
}
