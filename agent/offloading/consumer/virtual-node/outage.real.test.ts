/** A provider that is cut off in silence: packets of the consumer are dropped, no side is notified, and the provider goes on. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { nodes, pods } from '#shared/domain/core-kinds.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { shadowPods } from '#shared/schema/liqo/shadow-pod.ts';
import { type CutOffClusters, conditionOf, openCutOffClusters } from '#test/harness/cut-off-clusters.ts';
import { eventually } from '#test/harness/eventually.ts';
import type { TestApiServer } from '#test/harness/kube-apiserver.ts';
import { boundPod, startOwnOffloadingClusters } from '#test/harness/offloading-clusters.ts';

let cut: CutOffClusters<TestApiServer>;
const stops: AbortController[] = [];

beforeAll(async () => {
  cut = await openCutOffClusters(await startOwnOffloadingClusters(['demo']));
}, 900_000);
afterAll(async () => {
  for (const stop of stops) stop.abort();
  await cut?.stop();
});

const here = () => cut.world.consumer.api;
const there = () => cut.world.provider.api;

/** A ready node next to the virtual ones: in a cluster whose nodes are all silent, the node lifecycle controller evicts no pods. */
function keepOwnNode(): { stop(): void } {
  const stop = new AbortController();
  stops.push(stop);
  const conditions = [{ type: 'Ready', status: 'True', reason: 'KubeletReady', message: '' }];
  const beat = async (): Promise<void> => {
    await here().create(nodes, { apiVersion: 'v1', kind: 'Node', metadata: { name: 'own' } } as never);
    while (!stop.signal.aborted) {
      const now = new Date().toISOString();
      const at = { lastHeartbeatTime: now, lastTransitionTime: now };
      const status = { conditions: conditions.map((condition) => ({ ...condition, ...at })) };
      await here().mergePatch(nodes, { name: 'own' }, { status }, { subresource: 'status' });
      await systemClock.sleep(3_000, stop.signal).catch(() => undefined);
    }
  };
  beat().catch(() => undefined); // the cluster ended first
  return { stop: () => stop.abort() };
}

test('B113 B114 a longer cut marks pods unavailable, evicts none before its own delay, keeps the name of one that may still run reserved, and ends well', async () => {
  const { local, remote, cutOff, heal, runningPod } = cut;
  const delaySeconds = 4;
  await runningPod('patient', 300);
  await runningPod('hasty', delaySeconds);
  const before = { patient: await remote('patient'), hasty: await remote('hasty') };
  // Kubernetes waits 50 s until it gives a silent node up; nothing of that is ours, so it may be less here.
  await cut.world.servers.consumer.restartControllerManager(['--node-monitor-grace-period=16s']);
  const beating = keepOwnNode();
  cutOff();
  const taint = await eventually(
    'the Node is given up',
    async () => {
      const node = await here().get(nodes, { name: 'vn1' });
      return node?.spec?.taints?.find(({ key, effect }) => key.endsWith('/unreachable') && effect === 'NoExecute');
    },
    { withinMs: 60_000, everyMs: 50 },
  );
  const evicted = await eventually(
    'the eviction',
    async () => {
      const found = await local('hasty');
      return found?.metadata.deletionTimestamp === undefined ? undefined : found;
    },
    { withinMs: 60_000, everyMs: 50 },
  );
  const graceMs = (evicted.metadata.deletionGracePeriodSeconds ?? 0) * 1_000;
  const evictedAt = Date.parse(evicted.metadata.deletionTimestamp ?? '') - graceMs;
  // Both are written in whole seconds.
  const { timeAdded } = taint as { timeAdded?: string };
  expect(evictedAt - Date.parse(timeAdded ?? '')).toBeGreaterThanOrEqual((delaySeconds - 1) * 1_000);
  await eventually('the other is marked', async () => {
    const found = await local('patient');
    return found?.metadata.labels?.['liqo.io/remote-unavailable'] === 'true' && conditionOf(found, 'Ready') === 'False';
  });

  // Long past its grace period it still has its name here, because it still runs there.
  await systemClock.sleep(graceMs + 4_000);
  expect((await local('hasty'))?.metadata.uid).toBe(evicted.metadata.uid);
  await expect(here().create(pods, boundPod('demo', 'hasty', 'vn1'))).rejects.toMatchObject({
    code: 'kube_already_exists',
  });
  expect((await remote('hasty'))?.metadata.uid).toBe(before.hasty?.metadata.uid);
  expect((await local('patient'))?.metadata.deletionTimestamp).toBeUndefined();

  heal();
  await eventually('the evicted pod ends there', async () => !(await remote('hasty')), { withinMs: 60_000 });
  await eventually('and then here', async () => !(await local('hasty')));
  await eventually('the other serves again', async () => {
    const found = await local('patient');
    return !('liqo.io/remote-unavailable' in (found?.metadata.labels ?? {})) && conditionOf(found, 'Ready') === 'True';
  });
  expect((await remote('patient'))?.metadata.uid).toBe(before.patient?.metadata.uid);
  expect((await local('patient'))?.status?.containerStatuses?.[0]?.restartCount).toBe(0);
  const left = (await there().list(shadowPods)).map(({ metadata }) => metadata.name).sort();
  expect(left).toEqual(['patient']);
  beating.stop();
});
