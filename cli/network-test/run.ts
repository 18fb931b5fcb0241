/** A network test from the first pod to the last verdict. */

import { request } from 'node:http';
import { podExec } from '#cli/cluster/pod-exec.ts';
import type { Progress } from '#cli/output/progress.ts';
import { during } from '#cli/output/progress.ts';
import { abortsWith } from '#shared/async/abort-scope.ts';
import { type Probe, type ProbeOrder, type ProbeResult, probeProgram } from '#shared/domain/network-probe.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { Clock } from '#shared/ports/clock.ts';
import { container, testNamespace } from './manifests.ts';
import { type Matrix, matrixOf, type TestSide } from './plan.ts';
import { readSide } from './side.ts';
import { type Ground, placePods, placeServices, runningPods, type Wait } from './test-pods.ts';
import { type Verdict, verdictsOf } from './verdict.ts';

export interface TestOptions {
  readonly basic: boolean;
  readonly nodePort: boolean;
  readonly external?: { readonly ip: string; readonly port: number };
  readonly timeoutMs: number;
}

export interface Report {
  readonly rows: readonly Verdict[];
  /** Nodes that could not take part, and why. */
  readonly missing: readonly string[];
  /** What this command cannot test, and what does. No failure. */
  readonly untried?: readonly string[];
}

export interface Outside {
  readonly clock: Clock;
  readonly progress: Progress;
  readonly signal: AbortSignal;
}

/** A packet that takes longer is lost; but Services and routes are in place a moment after their objects. */
const probeTimeoutMs = 3_000;
const patienceMs = 8_000;
const pauseMs = 500;

export async function testNetwork(
  grounds: readonly [Ground, Ground],
  options: TestOptions,
  { clock, progress, signal }: Outside,
): Promise<Report> {
  const wait: Wait = { clock, signal, deadline: clock.now() + options.timeoutMs };
  const placed = await during(progress, 'test pods', async (step) => {
    await Promise.all(grounds.map(placePods));
    const news = new Map<string, string>();
    const printed = (cluster: string) => ({
      update(latest: string) {
        news.set(cluster, latest);
        step.update([...news.values()].join(', '));
      },
    });
    return Promise.all(grounds.map((ground) => runningPods(ground, wait, printed(ground.side.cluster))));
  });
  const [a, b] = await during(progress, 'Services', () =>
    prepare(
      grounds,
      placed.map(({ pods }) => pods),
      options,
      wait,
    ),
  );
  if (!a || !b || [a, b].some(({ pods }) => pods.every(({ host }) => host))) {
    throw new AppError(
      'deadline_exceeded',
      `no test pod runs: ${placed.flatMap(({ missing }) => missing).join('; ')}`,
      {
        detail: { remedy: `look at the pods of namespace ${testNamespace}` },
      },
    );
  }
  const matrix = matrixOf(a, b, options);
  const results = await during(progress, 'probes', (step) => {
    const count = matrix.rows.reduce((sum, row) => sum + row.probes.length, matrix.inner.length);
    let done = 0;
    const late = AbortSignal.timeout(Math.max(wait.deadline - clock.now(), 3 * patienceMs));
    return probeAll(grounds, matrix, { clock, signal: abortsWith(signal, late) }, () => {
      done += 1;
      const tenth = Math.ceil(count / 10);
      if (done === count || done % tenth === 0) step.update(`${done} of ${count}`);
    });
  });
  const sides = await Promise.all(grounds.map(({ kube, side }) => readSide(kube, side.cluster, side.peer)));
  const outcome = {
    results,
    sides: new Map(sides.map((side) => [side.cluster, side])),
    tests: new Map([a, b].map((test) => [test.side.cluster, test])),
    now: clock.now(),
  };
  return { rows: verdictsOf(matrix, outcome), missing: [...new Set(placed.flatMap(({ missing }) => missing))] };
}

const prepare = (
  grounds: readonly [Ground, Ground],
  pods: readonly TestSide['pods'][],
  { basic, nodePort, external }: TestOptions,
  wait: Wait,
): Promise<TestSide[]> =>
  Promise.all(
    grounds.map(async (ground, i): Promise<TestSide> => {
      const { side } = ground;
      const own = { side, pods: pods[i] ?? [] };
      if (basic) return own;
      const peerPods = pods[1 - i] ?? [];
      return { ...own, ...(await placeServices(ground, { peerPods, nodePort, ...(external && { external }) }, wait)) };
    }),
  );

/** Every pod does all of its probes in one go. */
export async function probeAll(
  grounds: readonly Ground[],
  matrix: Matrix,
  { clock, signal }: Omit<Outside, 'progress'>,
  heard: () => void,
): Promise<Map<string, ProbeResult>> {
  const results = new Map<string, ProbeResult>();
  const take = (result: ProbeResult): void => {
    results.set(result.id, result);
    heard();
  };
  const orders = new Map<string, { readonly cluster: string; readonly pod: string; readonly probes: Probe[] }>();
  const here: Probe[] = [];
  for (const { by, probes } of [...matrix.rows, ...matrix.inner.map(({ by, probe }) => ({ by, probes: [probe] }))]) {
    if (by === 'here') {
      here.push(...probes);
      continue;
    }
    const key = `${by.cluster}/${by.pod.name}`;
    const order = orders.get(key) ?? { cluster: by.cluster, pod: by.pod.name, probes: [] };
    order.probes.push(...probes);
    orders.set(key, order);
  }
  let podsAreDone = false;
  const byPods = Promise.all(
    [...orders.values()].map(async ({ cluster, pod, probes }) => {
      const ground = grounds.find(({ side }) => side.cluster === cluster);
      if (ground === undefined || probes.length === 0) return;
      const order: ProbeOrder = { timeoutMs: probeTimeoutMs, patienceMs, probes };
      const command = ['/usr/local/bin/node', probeProgram, 'run', JSON.stringify(order)];
      const onLine = (line: string): void => take(JSON.parse(line) as ProbeResult);
      await podExec(ground.target, { namespace: testNamespace, pod, container, command, onLine, signal });
    }),
  ).finally(() => {
    podsAreDone = true;
  });
  await Promise.all([
    byPods,
    // Pods begin later, when their programs have started: what they reach and this machine does not must have been asked at the same time.
    ...here.map(async (probe) => {
      const deadline = clock.now() + patienceMs;
      let result = await callFromHere(probe, signal);
      while (!result.ok && (clock.now() < deadline || !podsAreDone)) {
        await clock.sleep(pauseMs, signal);
        result = await callFromHere(probe, signal);
      }
      take(result);
    }),
  ]);
  return results;
}

/** From this machine: whether it answers is all that counts. */
function callFromHere(probe: Probe, signal: AbortSignal): Promise<ProbeResult> {
  const began = performance.now();
  const end = (ok: boolean, rest: Pick<ProbeResult, 'failure' | 'message'> = {}): ProbeResult => ({
    id: probe.id,
    ok,
    ms: Math.round(performance.now() - began),
    answeredBy: [],
    sources: [],
    ...rest,
  });
  if (probe.kind === 'ping') return Promise.resolve(end(false, { failure: 'broken' }));
  return new Promise((resolve) => {
    const sent = request(probe.url, {
      agent: false,
      signal: abortsWith(signal, AbortSignal.timeout(probeTimeoutMs)),
    });
    sent.on('response', (response) => {
      response.resume();
      resolve(end(true));
    });
    sent.on('error', (error) =>
      resolve(end(false, { failure: error.name === 'TimeoutError' ? 'timeout' : 'broken', message: error.message })),
    );
    sent.end();
  });
}
