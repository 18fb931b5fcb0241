/** A provider that is cut off in silence: packets of the consumer are dropped, no side is notified, and the provider goes on. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { configMaps } from '#shared/domain/core-kinds.ts';
import type { ConfigMap } from '#shared/domain/kube-object.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { type CutOffClusters, openCutOffClusters } from '#test/harness/cut-off-clusters.ts';
import { eventually } from '#test/harness/eventually.ts';
import { startOffloadingClusters } from '#test/harness/offloading-clusters.ts';

let cut: CutOffClusters;

beforeAll(async () => {
  cut = await openCutOffClusters(await startOffloadingClusters(['demo']));
}, 900_000);
afterAll(async () => await cut?.stop());

const here = () => cut.world.consumer.api;
const there = () => cut.world.provider.api;

async function inParallel(count: number, work: (i: number) => Promise<unknown>): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: 20 }, worker));
}

const setting = (i: number): ConfigMap => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { namespace: 'demo', name: `setting-${i}` },
  data: { value: 'before' },
});

test('B113 30 s without the provider change nothing about pods, and 1,000 objects that changed meanwhile are equal after its return', async () => {
  const { local, remote, isReady, cutOff, heal, runningPod } = cut;
  await runningPod('steady', 300);
  const startedAt = Date.now();
  await inParallel(1_000, (i) => here().create(configMaps, setting(i)));
  const copies = async (value: string): Promise<number> => {
    const found = await there().list(configMaps, { namespace: 'demo-cons' });
    return found.filter(({ data }) => data?.value === value).length;
  };
  await eventually('the first copies', async () => (await copies('before')) === 1_000, { withinMs: 60_000 });
  const undisturbedMs = Date.now() - startedAt;
  const before = { local: await local('steady'), remote: await remote('steady') };

  cutOff();
  const cutAt = Date.now();
  await inParallel(1_000, (i) =>
    here().mergePatch(configMaps, { namespace: 'demo', name: `setting-${i}` }, { data: { value: 'after' } }),
  );
  await systemClock.sleep(Math.max(0, cutAt + 30_000 - Date.now()));
  expect(await copies('after')).toBe(0);
  const during = await local('steady');
  heal();
  const healedAt = Date.now();
  await eventually('the changes are there', async () => (await copies('after')) === 1_000, {
    withinMs: 180_000,
    everyMs: 250,
  });
  const tookMs = Date.now() - healedAt;
  console.log(
    `1,000 objects: made and copied in ${undisturbedMs} ms; changed during a cut of 30 s, equal ${tookMs} ms after it`,
  );
  expect(during?.metadata).toEqual(before.local?.metadata);
  expect(during?.status).toEqual(before.local?.status);
  expect((await remote('steady'))?.metadata.resourceVersion).toBe(before.remote?.metadata.resourceVersion);
  await eventually('the Node is Ready', isReady, { withinMs: 60_000 });
});
