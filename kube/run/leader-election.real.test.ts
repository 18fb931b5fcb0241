import { afterAll, beforeAll, expect, test } from 'vitest';
import { leases } from '#shared/domain/core-kinds.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { startApiServer, type TestApiServer } from '#test/harness/kube-apiserver.ts';
import { startTcpProxy, type TcpProxy } from '#test/harness/tcp-proxy.ts';
import { connectKubeconfig } from '../http/kubeconfig.ts';
import type { Cluster } from '../model/types.ts';
import { openCluster } from '../open-cluster.ts';
import { type LeaseOptions, runAsLeader } from './leader-election.ts';

const deps = { clock: systemClock, log: silentLog };
const patience = { timeout: 60_000, interval: 10 };
let server: TestApiServer;
const stopAll = new AbortController();
beforeAll(async () => {
  server = await startApiServer();
}, 900_000);
afterAll(async () => {
  stopAll.abort();
  await server?.stop();
});

async function open(proxy?: TcpProxy): Promise<Cluster> {
  const url = proxy === undefined ? server.url : `https://127.0.0.1:${proxy.port}`;
  return openCluster(await connectKubeconfig(server.kubeconfig.replaceAll(server.url, url)), deps, stopAll.signal);
}

const fast = { durationMs: 4_000, renewDeadlineMs: 2_000, retryMs: 200 };
/** With polls this seldom, a candidate leads soon only when the watch reports the release. */
const toldOnly = { durationMs: 300_000, renewDeadlineMs: 200_000, retryMs: 100_000 };
const unhurried = { durationMs: 30_000, renewDeadlineMs: 20_000, retryMs: 200 };
/** How long a server takes to start is the machine's affair. */
const longDeadline = { durationMs: 90_000, renewDeadlineMs: 60_000 };

/** Each term of any candidate ends before the next one begins. */
function expectOneAtATime(history: readonly string[]): void {
  for (let i = 0; i + 1 < history.length; i += 2) {
    expect(history[i + 1]).toBe(history[i]?.replace('begins', 'ends'));
  }
}

interface Candidate {
  readonly leading: () => boolean;
  readonly terms: () => number;
  /** Shuts down cleanly. */
  leave(): Promise<void>;
}

/** Appends to `history` when a term begins and ends. */
function candidate(
  cluster: Cluster,
  name: string,
  identity: string,
  history: string[],
  timing: Pick<LeaseOptions, 'durationMs' | 'renewDeadlineMs' | 'retryMs' | 'hasEnded'> = {},
): Candidate {
  const stop = new AbortController();
  let leading = false;
  let terms = 0;
  const running = runAsLeader(
    { ...deps, ...cluster },
    { namespace: 'default', name, identity, ...timing },
    stop.signal,
    async (signal) => {
      leading = true;
      terms++;
      history.push(`${identity} begins`);
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
      history.push(`${identity} ends`);
      leading = false;
    },
  );
  const leave = async (): Promise<void> => {
    stop.abort();
    await running;
  };
  return { leading: () => leading, terms: () => terms, leave };
}

test('of three candidates one leads, and when it leaves another begins at once, never before the first has ended', async () => {
  const history: string[] = [];
  const cluster = await open();
  const all = ['one', 'two', 'three'].map((identity) => candidate(cluster, 'shared', identity, history, toldOnly));
  await expect.poll(() => all.filter((c) => c.leading()).length, patience).toBe(1);
  const first = all.find((c) => c.leading());
  await first?.leave();
  await expect.poll(() => all.filter((c) => c.leading()).length, patience).toBe(1);
  await Promise.all(all.map((c) => c.leave()));
  expect(history.filter((entry) => entry.endsWith('begins')).length).toBeGreaterThanOrEqual(2);
  expectOneAtATime(history);
  const lease = await cluster.api.get(leases, { namespace: 'default', name: 'shared' });
  expect(lease?.spec?.holderIdentity ?? '').toBe('');
});

test('a leader whose line to the server stalls steps down before its lease runs out, and only then a successor begins', async () => {
  const history: string[] = [];
  const proxy = await startTcpProxy(Number(new URL(server.url).port));
  const cutOff = candidate(await open(proxy), 'stalling', 'cut-off', history, fast);
  await expect.poll(() => cutOff.leading(), patience).toBe(true);
  const other = candidate(await open(), 'stalling', 'other', history, fast);
  proxy.newConnections('stall');
  proxy.stall();
  await expect.poll(() => other.leading(), patience).toBe(true);
  // On a machine that stands still for seconds each of them may have had another term before.
  expect([history[0], history.at(-1)]).toEqual(['cut-off begins', 'other begins']);
  expectOneAtATime(history);
  await Promise.all([cutOff.leave(), other.leave()]);
  await proxy.close();
});

test('a leader that has ended for certain is followed at once, and one that may live only when its lease runs out', async () => {
  const cluster = await open();
  const killed = async (name: string, holderIdentity: string, leaseDurationSeconds: number): Promise<void> => {
    const renewTime = new Date().toISOString().replace('Z', '000Z');
    await cluster.api.create(leases, {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { namespace: 'default', name },
      spec: { holderIdentity, leaseDurationSeconds, renewTime },
    });
  };
  // The first one would be respected for longer than anybody waits here.
  await Promise.all([killed('here', 'old@node-1', 300), killed('elsewhere', 'old@node-10', 4)]);
  const onNode1 = { ...fast, hasEnded: (holder: string) => holder.endsWith('@node-1') };
  const ledAfter = async (name: string): Promise<number> => {
    // The time of day, by which a candidate counts how long it respects a lease.
    const from = Date.now();
    const follower = candidate(cluster, name, 'new@node-1', [], onNode1);
    await expect.poll(() => follower.leading(), patience).toBe(true);
    const tookMs = Date.now() - from;
    await follower.leave();
    return tookMs;
  };
  const [, elsewhere] = await Promise.all([ledAfter('here'), ledAfter('elsewhere')]);
  expect(elsewhere).toBeGreaterThan(3_900);
});

test('an undisturbed leader only writes, a candidate mostly relies on its watch, and an annotation on the Lease ends no term', async () => {
  const history: string[] = [];
  const cluster = await open();
  const counting = (of: Cluster) => {
    let gets = 0;
    const api: Cluster['api'] = Object.create(of.api, {
      get: {
        value: (...args: Parameters<Cluster['api']['get']>) => {
          gets += 1;
          return of.api.get(...args);
        },
      },
    });
    return { cluster: { ...of, api }, gets: () => gets };
  };
  const ref = { namespace: 'default', name: 'undisturbed' };
  const renewals = async (count: number): Promise<void> => {
    const seen = new Set<string | undefined>();
    await expect
      .poll(async () => seen.add((await cluster.api.get(leases, ref))?.spec?.renewTime).size, patience)
      .toBeGreaterThan(count);
  };
  const [leads, waits] = [counting(cluster), counting(await open())];
  const leader = candidate(leads.cluster, ref.name, 'leader', history, unhurried);
  await expect.poll(() => leader.leading(), patience).toBe(true);
  const seldom = { ...unhurried, retryMs: 500 };
  const follower = candidate(waits.cluster, ref.name, 'follower', history, seldom);
  const [asked, from] = [leads.gets(), performance.now()];
  await renewals(20);
  const looks = (performance.now() - from) / seldom.retryMs;
  // A renewal that a busy server did not answer in time is looked for.
  expect(leads.gets() - asked).toBeLessThan(5);
  // It looks less often than the leader renews, so that there is news at most times, on a busy server as well.
  expect(waits.gets()).toBeLessThan(looks / 2);
  const before = leads.gets();
  await cluster.api.mergePatch(leases, ref, { metadata: { annotations: { 'example.com/note': 'x' } } });
  await renewals(3);
  expect(leads.gets()).toBeGreaterThan(before);
  expect(leads.gets() - before).toBeLessThan(4);
  const noted = await cluster.api.get(leases, ref);
  expect(noted?.metadata.annotations).toEqual({ 'example.com/note': 'x' });
  expect(history).toEqual(['leader begins']);
  await Promise.all([leader.leave(), follower.leave()]);
});

test('a leader leads on through a restart of the server that is shorter than its deadline', async () => {
  const history: string[] = [];
  const leader = candidate(await open(), 'steady', 'leader', history, longDeadline);
  await expect.poll(() => leader.leading(), patience).toBe(true);
  await server.kill();
  await server.start();
  const cluster = await open();
  const renewTime = async () =>
    (await cluster.api.get(leases, { namespace: 'default', name: 'steady' }))?.spec?.renewTime;
  const before = await renewTime();
  await expect.poll(renewTime, patience).not.toBe(before);
  expect(history).toEqual(['leader begins']);
  await leader.leave();
});
