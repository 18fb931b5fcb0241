/** A provider that is cut off in silence: nothing that the consumer sends arrives, nobody is told, and the provider goes on. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createConnectProvider } from '#agent/kubelet/peer.ts';
import { systemClock } from '#agent/runtime/clock.ts';
import { configMaps, nodes, pods } from '#shared/domain/core-kinds.ts';
import type { ConfigMap, Pod } from '#shared/domain/kube-object.ts';
import { silentLog } from '#shared/ports/log.ts';
import { shadowPods } from '#shared/schema/liqo/shadow-pod.ts';
import { eventually } from '#test/harness/eventually.ts';
import type { TestApiServer } from '#test/harness/kube-apiserver.ts';
import {
  boundPod,
  createVirtualNode,
  mapNamespaces,
  type OffloadingWorld,
  runPod,
  startOwnOffloadingWorld,
} from '#test/harness/offloading-world.ts';
import { type Running, startConsumer } from '#test/harness/reflection-world.ts';
import { startTcpProxy, type TcpProxy } from '#test/harness/tcp-proxy.ts';

let world: OffloadingWorld<TestApiServer>;
let line: TcpProxy;
let agent: Running;
const stops: AbortController[] = [];

beforeAll(async () => {
  world = await startOwnOffloadingWorld(['demo']);
  const { port } = new URL(world.servers.provider.url);
  line = await startTcpProxy(Number(port));
  const connect = createConnectProvider({ clock: systemClock, log: silentLog });
  agent = startConsumer(world, {
    kubeletPortBase: 12_650,
    connectPeer: (kubeconfig, signal) => connect(kubeconfig.replaceAll(`:${port}`, `:${line.port}`), signal),
  });
  await createVirtualNode(world, 'vn1', { resourceQuota: { hard: { cpu: '40', memory: '80Gi', pods: '1100' } } });
  await mapNamespaces(world, ['demo']);
  await eventually('the Node', isReady);
}, 900_000);
afterAll(async () => {
  for (const stop of stops) stop.abort();
  line?.cut();
  await agent?.stop();
  await line?.close();
  await world?.stop();
});

const here = () => world.consumer.api;
const there = () => world.provider.api;
const local = (name: string) => here().get(pods, { namespace: 'demo', name });
const remote = (name: string) => there().get(pods, { namespace: 'demo-cons', name });
const conditionOf = (of: Pod | undefined, type: string) =>
  of?.status?.conditions?.find((one) => one.type === type)?.status;
async function isReady(): Promise<boolean> {
  const node = await here().get(nodes, { name: 'vn1' });
  return node?.status?.conditions?.find(({ type }) => type === 'Ready')?.status === 'True';
}

/** As if every packet were dropped. */
function cutOff(): void {
  line.newLines('stall');
  line.stall();
}
/** What hung until now ends; a router would say so, too, or TCP would give up. */
function heal(): void {
  line.newLines('pass');
  line.cut();
}

/** `tolerates`: seconds for which the pod stays on a node that is lost. */
async function runningPod(name: string, tolerates: number): Promise<void> {
  const lost = (key: string) => ({
    key: `node.kubernetes.io/${key}`,
    operator: 'Exists',
    effect: 'NoExecute',
    tolerationSeconds: tolerates,
  });
  const own = { key: 'virtual-node.liqo.io/not-allowed', operator: 'Exists', effect: 'NoExecute' };
  const tolerations = [own, lost('unreachable'), lost('not-ready')];
  await here().create(pods, boundPod('demo', name, 'vn1', { tolerations, terminationGracePeriodSeconds: 1 }));
  await runPod(world, 'demo-cons', name);
  await eventually(`${name} is ready`, async () => conditionOf(await local(name), 'Ready') === 'True');
}

/** A cluster all of whose nodes are silent evicts nobody: this one is not. */
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

test('B113 B114 a longer cut marks pods unavailable, evicts none before its own delay, lets nobody take the name of one that may still run, and ends well', async () => {
  const delaySeconds = 4;
  await runningPod('patient', 300);
  await runningPod('hasty', delaySeconds);
  const before = { patient: await remote('patient'), hasty: await remote('hasty') };
  // Kubernetes waits 50 s until it gives a silent node up; nothing of that is ours, so it may be less here.
  await world.servers.consumer.restartControllerManager(['--node-monitor-grace-period=16s']);
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
  expect(left).toEqual(['patient', 'steady']);
  beating.stop();
});
