/**
 * A polite tenant beside an abusive one on a broker of one process: P99 of the polite one alone and beside the other, in turns in one run. The
 * abusive tenant keeps within its limits (those of a hosted broker) and asks for what is dear: its audit log of thousands of records for an
 * action that is not in it among all that it did, page by page, and as many long polls as it can hold. Then join tokens a second, asked for by many at once.
 */
import { spawn } from 'node:child_process';
import { loadavg } from 'node:os';
import path from 'node:path';
import { performance } from 'node:perf_hooks';
import { createInterface } from 'node:readline';
import type { Served } from '../api/inside.ts';
import { type Ask, type Call, type LocalBroker, load, until, withBroker } from '../api/local-broker.ts';
import { type BenchOptions, type BenchResult, median, thisMachine } from '../result.ts';
import { quantile } from '../swarm/scenario.ts';
import type { Abuse } from './abuser.ts';

const perSecond = 20;
const records = 5_000;
const tokenSeconds = 5;
const tokenRounds = 3;
const tokenClients = 64;

export const run = ({ root, runs = 5, seconds = 20, log }: BenchOptions): Promise<BenchResult> =>
  withBroker(root, 256, async (broker) => {
    const { ask, operatorKey } = broker;
    const [polite, abusive] = [await tenant(broker, 'polite'), await tenant(broker, 'abusive')];
    log(`the abusive tenant gets ${records} audit records`);
    const made = await makeTokens(ask, abusive, (count) => count < records);
    const tokens: number[] = [];
    for (let round = 0; round < tokenRounds; round += 1) {
      const enough = performance.now() + tokenSeconds * 1_000;
      tokens.push(await makeTokens(ask, polite, () => performance.now() < enough));
    }
    log(`${tokens.map((rate) => rate.toFixed(0)).join(', ')} join tokens a second; ${made.toFixed(0)} a second beside`);
    const limits = { limits: { requestsPerMinute: 3_000 } };
    await ask(operatorKey, { method: 'PATCH', at: '/v1/tenants/abusive', body: limits });
    log('two minutes, until what was made does not count against the limit of the abusive tenant any more');
    await until(performance.now() + 121_000);
    await politeLoad(ask, polite, 3);
    const rounds: Round[] = [];
    const refused = { count: 0, asked: 0 };
    const quietly = async (): Promise<Measured> => {
      await broker.served();
      const times = await politeLoad(ask, polite, seconds);
      return { times, served: await broker.served() };
    };
    const beside = async () => {
      const abuser = await startAbuser(broker, root, abusive);
      try {
        return await quietly();
      } finally {
        const { asked, count } = await abuser.stop();
        refused.asked += asked;
        refused.count += count;
      }
    };
    for (let n = 0; n < runs; n += 1) {
      const machine = loadavg()[0] ?? 0;
      // In turns which comes first, so that other work on the machine that comes or goes meets both alike.
      const quietFirst = n % 2 === 0;
      const first = await (quietFirst ? quietly() : beside());
      const second = await (quietFirst ? beside() : quietly());
      const [quiet, noisy] = quietFirst ? [first, second] : [second, first];
      const round = { alone: figuresOf(quiet, seconds), beside: figuresOf(noisy, seconds), load: machine };
      rounds.push(round);
      log(`round ${n + 1}: alone ${inWords(round.alone)}; beside ${inWords(round.beside)}; load ${machine.toFixed(0)}`);
    }
    const medianOf = (figure: (round: Round) => number) => median(rounds.map(figure));
    const ratio = medianOf((round) => round.beside.p99) / medianOf((round) => round.alone.p99);
    return {
      name: 'fair',
      unit: 'times its P99 alone is the P99 of a polite tenant beside an abusive one (target 2)',
      value: ratio,
      samples: rounds.map((round) => round.beside.p99 / round.alone.p99),
      phases: {
        'P99 alone, ms, median of rounds': medianOf((round) => round.alone.p99),
        'P99 beside, ms, median of rounds': medianOf((round) => round.beside.p99),
        'times its P99 alone inside the broker, from header to end of answer':
          medianOf((round) => round.beside.insideP99) / medianOf((round) => round.alone.insideP99),
        'P99 alone inside, ms, median of rounds': medianOf((round) => round.alone.insideP99),
        'P99 beside inside, ms, median of rounds': medianOf((round) => round.beside.insideP99),
        'times as much the broker ran meanwhile, P99':
          medianOf((round) => round.beside.ranP99) / medianOf((round) => round.alone.ranP99),
        'P99 of what the broker ran meanwhile alone, ms, median of rounds': medianOf((round) => round.alone.ranP99),
        'P99 of what the broker ran meanwhile beside, ms, median of rounds': medianOf((round) => round.beside.ranP99),
        'P99 of lateness of the event loop alone, ms': medianOf((round) => round.alone.loopDelayP99),
        'P99 of lateness of the event loop beside, ms': medianOf((round) => round.beside.loopDelayP99),
        '% of a core that the broker took alone': medianOf((round) => round.alone.tookOfCore),
        '% of a core that the broker took beside': medianOf((round) => round.beside.tookOfCore),
        '% of the time that it had no core alone': medianOf((round) => round.alone.hadNoCore),
        '% of the time that it had no core beside': medianOf((round) => round.beside.hadNoCore),
        'P50 alone, ms, median of rounds': medianOf((round) => round.alone.p50),
        'P50 beside, ms, median of rounds': medianOf((round) => round.beside.p50),
        'requests of the polite tenant in a round, each way': perSecond * seconds,
        'requests of the abusive tenant': refused.asked,
        'of these beyond its limit': refused.count,
        'join tokens a second (target 1,000)': median(tokens),
        'load of the machine, median of rounds': medianOf((round) => round.load),
      },
      raw: { rounds, tokens },
      machine: thisMachine(root),
    };
  });

interface Measured {
  /** At the client, ascending. */
  readonly times: readonly number[];
  readonly served: Served;
}

interface Figures {
  readonly p50: number;
  readonly p99: number;
  readonly insideP99: number;
  /** Milliseconds that the broker ran meanwhile. */
  readonly ranP99: number;
  readonly loopDelayP99: number;
  /** In percent: of one core, and of the time in which the broker had something to do and no core to do it. */
  readonly tookOfCore: number;
  readonly hadNoCore: number;
  readonly times: readonly number[];
}

interface Round {
  readonly alone: Figures;
  readonly beside: Figures;
  /** Of the machine in the minute before. */
  readonly load: number;
}

const figuresOf = ({ times, served }: Measured, seconds: number): Figures => ({
  p50: quantile(times, 0.5),
  p99: quantile(times, 0.99),
  insideP99: quantile(served.times.polite ?? [], 0.99),
  ranP99: quantile(served.ran.polite ?? [], 0.99),
  loopDelayP99: served.loopDelayP99,
  tookOfCore: served.ranMs / (10 * seconds),
  hadNoCore: served.waitedForCoreMs / (10 * seconds),
  times: times.map((ms) => Number(ms.toFixed(2))),
});

const inWords = ({ p99, insideP99, ranP99, hadNoCore }: Figures): string =>
  `P99 ${p99.toFixed(1)} ms, ${insideP99.toFixed(1)} ms of it inside (ran ${ranP99.toFixed(1)} ms), ${hadNoCore.toFixed(0)} % without a core`;

/** The first key of a new tenant, without limits that matter. */
async function tenant({ ask, operatorKey }: LocalBroker, name: string): Promise<string> {
  const body = { name, limits: { requestsPerMinute: 1_000_000 } };
  const { status, body: answer } = await ask(operatorKey, { method: 'POST', at: '/v1/tenants', body });
  if (status !== 201) throw new Error(`making tenant ${name}: ${status} ${JSON.stringify(answer)}`);
  return answer.firstKey.secret;
}

/** Makes join tokens, each with an audit record, while `more` says so of those begun; how many a second. */
async function makeTokens(ask: Ask, key: string, more: (count: number) => boolean): Promise<number> {
  const startedAt = performance.now();
  let made = 0;
  await Promise.all(
    Array.from({ length: tokenClients }, async () => {
      while (more(made)) {
        made += 1;
        const { status } = await ask(key, { method: 'POST', at: '/v1/join-tokens', body: { cluster: `c-${made}` } });
        if (status !== 201) throw new Error(`a join token: ${status}`);
      }
    }),
  );
  return (made * 1_000) / (performance.now() - startedAt);
}

const questions: readonly Call[] = [
  { method: 'GET', at: '/v1/clusters?limit=50' },
  { method: 'GET', at: '/v1/tenant' },
  { method: 'GET', at: '/v1/events?limit=50' },
  { method: 'POST', at: '/v1/join-tokens', body: { cluster: 'new' } },
];

async function politeLoad(ask: Ask, key: string, seconds: number): Promise<readonly number[]> {
  const question = (n: number): Call => questions[n % questions.length] ?? { method: 'GET', at: '/v1/tenant' };
  const { times, failed } = await load((call) => ask(key, call), { rate: perSecond, seconds, question });
  if (failed.length > 0) throw new Error(`${failed.length} requests failed: ${failed.slice(0, 3).join('; ')}`);
  return times;
}

/** A process of its own, so that what its answers cost is not measured as the broker's. */
async function startAbuser({ url, caFile }: LocalBroker, root: string, key: string) {
  const script = path.join(root, 'scripts', 'run.mjs');
  const child = spawn(process.execPath, [script, 'bench/fair/abuser.ts', url, caFile], {
    env: { ...process.env, ABUSER_KEY: key },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const line = async (): Promise<string> => {
    const { value, done } = await lines.next();
    if (done === true) throw new Error('the abusive tenant ended by itself');
    return value;
  };
  await line();
  return {
    async stop(): Promise<Abuse> {
      child.stdin.end();
      return JSON.parse(await line()) as Abuse;
    },
  };
}
