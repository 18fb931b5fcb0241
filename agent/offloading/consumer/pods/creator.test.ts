import { expect, test } from 'vitest';
import type { Cache, Change, Cluster, KubeApi } from '#kube/model/types.ts';
import { pods } from '#shared/domain/core-kinds.ts';
import { keyOf, type Pod } from '#shared/domain/kube-object.ts';
import { ManualClock } from '#shared/ports/clock.ts';
import { silentLog } from '#shared/ports/log.ts';
import type { ShadowPod } from '#shared/schema/liqo/shadow-pod.ts';
import { createOffloadedPodController, writtenShadowPods } from './controller.ts';
import { context } from './testing/local-and-remote.ts';

const pod = (name: string): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { namespace: 'demo', name, uid: `uid-${name}` },
  spec: { nodeName: 'vn1', containers: [{ name: 'app', image: 'app:1' }] },
  status: { phase: 'Pending' },
});

/** A cache that holds what it is given, and tells each object once. */
function remembering(type: Cache<Pod>['type']) {
  const objects = new Map<string, Pod>();
  const listeners = new Set<(change: Change<Pod>) => void>();
  const cache = {
    type,
    get: ({ namespace, name }: { namespace?: string; name: string }) => objects.get(`${namespace}/${name}`),
    list: () => [...objects.values()],
    synced: async () => undefined,
    subscribe: (listener: (change: Change<Pod>) => void) => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  } as unknown as Cache<Pod>;
  return {
    cache,
    put(object: Pod): void {
      objects.set(keyOf(object), object);
      for (const listener of listeners) listener({ after: object });
    },
  };
}

test('a ShadowPod names its creator once the provider has reported it, and follows the provider when that changes', async () => {
  const stop = new AbortController();
  const clock = new ManualClock();
  const local = remembering(pods);
  const said: (string | undefined)[] = [];
  let knownAs = 'slice-1';
  const peer = {
    create: async (_type: unknown, shadow: ShadowPod) => {
      said.push(shadow.metadata.labels?.['liqo.io/creator-user']);
      const labels = { ...shadow.metadata.labels, 'liqo.io/creator-user': knownAs };
      return { ...shadow, metadata: { ...shadow.metadata, uid: `shadow-${said.length}`, labels } };
    },
  } as unknown as KubeApi;
  const api = { mergePatch: async (_type: unknown, { name }: { name: string }) => pod(name) } as unknown as KubeApi;
  const controller = createOffloadedPodController({
    local: { api, events: { emit: () => undefined } } as unknown as Pick<Cluster, 'api' | 'events'>,
    peer,
    localPods: local.cache,
    mapping: () => ({ kind: 'accepted', remoteNamespace: 'demo-cons' }),
    remote: () => ({ remote: 'demo-cons', isSynced: () => true, shadows: local.cache, pods: local.cache }) as never,
    nodeReady: () => true,
    context: () => context,
    written: writtenShadowPods(clock),
    clock,
    log: silentLog,
    workers: 1,
  });
  const running = controller.run(stop.signal);
  const made = async (name: string): Promise<void> => {
    const count = said.length + 1;
    local.put(pod(name));
    await expect.poll(() => said.length, { timeout: 30_000 }).toBe(count);
  };
  await made('a');
  await made('b');
  knownAs = 'slice-2';
  await made('c');
  await made('d');
  expect(said).toEqual([undefined, 'slice-1', 'slice-1', 'slice-2']);
  stop.abort();
  await running;
});
