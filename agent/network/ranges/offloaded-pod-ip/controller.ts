/** IPs of offloaded pods: kept while this cluster has two links or more; the pods are watched only then. */
import { rangeIps } from '#agent/model/network-selections.ts';
import type { Cache, Controller } from '#kube/model/types.ts';
import { createController, watch } from '#kube/run/controller.ts';
import { deleteObject } from '#kube/writes/write-if-changed.ts';
import { abortScope, type LinkedAbort } from '#shared/async/abort-scope.ts';
import { pods } from '#shared/domain/core-kinds.ts';
import { keyOf, type Pod, refOfKey } from '#shared/domain/kube-object.ts';
import { fieldManager, label } from '#shared/domain/liqo-keys.ts';
import { again, type Outcome, settled, waiting } from '#shared/domain/outcome.ts';
import { codeOf } from '#shared/errors/app-error.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import type { NetworkDeps } from '../../model/deps.ts';
import { decide, isOfPod, viewsBetweenPeers } from './decide.ts';

const retryMs = 60_000;
const retryNowMs = 100;

const lean = ({ apiVersion, kind, metadata, status }: Pod): Pod =>
  ({
    apiVersion,
    kind,
    metadata: {
      name: metadata.name,
      namespace: metadata.namespace,
      uid: metadata.uid,
      deletionTimestamp: metadata.deletionTimestamp,
    },
    status: { phase: status?.phase, podIP: status?.podIP },
  }) as Pod;

export function createOffloadedPodIpController(deps: NetworkDeps): Controller {
  const { cluster } = deps;
  const { api, caches, events } = cluster;
  const ips = rangeIps(caches);
  const configurations = caches.cache(networkKinds.configurations);
  const views = (): readonly string[] => viewsBetweenPeers(configurations.list());
  let following: { readonly pods: Cache<Pod>; readonly life: LinkedAbort } | undefined;
  const keys = (): string[] => [...(following?.pods.list() ?? []), ...ips.list().filter(isOfPod)].map(keyOf);

  async function reconcile(key: string, signal: AbortSignal): Promise<Outcome> {
    const ref = refOfKey(key);
    const now = following;
    await now?.pods.synced(now.life.signal).catch(() => undefined);
    if (signal.aborted || now !== following) return again(retryNowMs);
    const pod = now?.pods.get(ref);
    const ip = ips.get(ref);
    const action = decide(pod, ip, views());
    if (action.do === 'delete' && ip) await deleteObject(api, networkKinds.ips, ip, signal);
    if (action.do === 'tell' && pod) {
      events.emit(pod, 'Warning', 'NameTaken', action.message);
      return waiting(action.message, retryMs);
    }
    if (action.do !== 'apply') return settled;
    try {
      await api.apply(networkKinds.ips, action.ip, { fieldManager: fieldManager.agent }, signal);
    } catch (error) {
      // Its namespace is being deleted, and the pod with it.
      if (codeOf(error) !== 'kube_forbidden' && codeOf(error) !== 'kube_not_found') throw error;
      return waiting('its namespace to take an IP', retryMs);
    }
    return settled;
  }

  const controller = createController(
    {
      name: 'offloaded-pod-ip',
      watches: [watch(ips, (ip) => (isOfPod(ip) ? [keyOf(ip)] : [])), watch(configurations, keys)],
      workers: 4,
      reconcile,
    },
    deps,
  );

  /** Follows the pods as long as another peer could reach them through this cluster. */
  function follow(signal: AbortSignal): () => void {
    function start(): void {
      const life = abortScope(signal);
      const selection = { labelSelector: `${label.shadowPod}=true`, transform: lean };
      following = { pods: caches.scoped(pods, selection, life.signal), life };
      following.pods.subscribe(({ before, after }) => {
        const pod = after ?? before;
        if (pod) controller.enqueue(keyOf(pod));
      });
    }
    function stop(): void {
      following?.life.abort();
      following?.life.unlink();
      following = undefined;
    }
    function look(): void {
      const needed = views().length > 0;
      if (needed && following === undefined) start();
      if (!needed) stop();
    }
    const unsubscribe = configurations.subscribe(look);
    return () => {
      unsubscribe();
      stop();
    };
  }

  return {
    ...controller,
    async run(signal) {
      const end = follow(signal);
      try {
        await controller.run(signal);
      } finally {
        end();
      }
    },
  };
}
