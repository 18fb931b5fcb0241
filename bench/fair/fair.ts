/**
 * A polite tenant beside an abusive one on a broker of one process: P99 of the polite one alone and beside the other, in turns in one run. The
 * abusive tenant keeps within its limits (those of a hosted broker) and asks for what is dear: its audit log of thousands of records for a
 * subject that is not in it, page by page, and as many long polls as it can hold. Then join tokens a second, asked for by many at once.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { Agent, request } from 'node:https';
import os from 'node:os';
import path from 'node:path';
import { performance } from 'node:perf_hooks';
import { createInterface } from 'node:readline';
import { type BenchResult, median, thisMachine } from '../result.ts';
import { quantile } from '../swarm/scenario.ts';

const perSecond = 20;
const records = 5_000;
const viewers = 8;
const polls = 50;
/** Of 50 a second that its limit allows; the polls need the rest. */
const viewsPerSecond = 40;
const tokenSeconds = 5;
const tokenClients = 64;

interface Options {
  readonly root: string;
  readonly runs: number | undefined;
  readonly seconds?: number | undefined;
  readonly log: (line: string) => void;
}

interface Started {
  readonly url: string;
  readonly operatorKey: string;
  readonly caFile: string;
}

interface Call {
  readonly key: string;
  readonly method: string;
  readonly at: string;
  readonly body?: unknown;
}

interface Answered {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: answers of every shape
  readonly body: any;
}

type Ask = (call: Call) => Promise<Answered>;

export async function run({ root, runs = 3, seconds = 20, log }: Options): Promise<BenchResult> {
  const dir = mkdtempSync(path.join(os.tmpdir(), 'isthmus-bench-fair-'));
  const script = path.join(root, 'scripts', 'run.mjs');
  const child = spawn(process.execPath, [script, 'bench/api/broker-process.ts', dir], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const agent = new Agent({ keepAlive: true, maxSockets: 256 });
  try {
    const broker = await started(child);
    const ask = asking(broker, agent);
    const [polite, abusive] = [await tenant(ask, broker, 'polite'), await tenant(ask, broker, 'abusive')];
    log(`the abusive tenant gets ${records} audit records`);
    const made = await pour(ask, abusive, records);
    const tokens = await tokensPerSecond(ask, polite);
    log(`${tokens.toFixed(0)} join tokens a second; ${made.toFixed(0)} a second beside`);
    const limits = { limits: { requestsPerMinute: 3_000 } };
    await ask({ key: broker.operatorKey, method: 'PATCH', at: '/v1/tenants/abusive', body: limits });
    await load(ask, polite, 3);
    const [alone, beside, ratios]: [number[], number[], number[]] = [[], [], []];
    const refused = { count: 0, asked: 0 };
    for (let round = 0; round < runs; round += 1) {
      const quiet = quantile(await load(ask, polite, seconds), 0.99);
      const stop = abuse(ask, abusive, refused);
      const noisy = quantile(await load(ask, polite, seconds), 0.99);
      await stop();
      alone.push(quiet);
      beside.push(noisy);
      ratios.push(noisy / quiet);
      log(`round ${round + 1}: P99 ${quiet.toFixed(1)} ms alone, ${noisy.toFixed(1)} ms beside`);
    }
    return {
      name: 'fair',
      unit: 'times its P99 alone is the P99 of a polite tenant beside an abusive one (target 2)',
      value: median(ratios),
      samples: ratios,
      phases: {
        'P99 alone, ms': median(alone),
        'P99 beside, ms': median(beside),
        'requests of the abusive tenant': refused.asked,
        'of these beyond its limit': refused.count,
        'join tokens a second (target 1,000)': tokens,
      },
      machine: thisMachine(root),
    };
  } finally {
    agent.destroy();
    child.stdin?.end();
    await new Promise((resolve) => (child.exitCode === null ? child.once('exit', resolve) : resolve(undefined)));
    rmSync(dir, { recursive: true, force: true });
  }
}

function started(child: ChildProcess): Promise<Started> {
  if (child.stdout === null) throw new Error('the broker has no output');
  const lines = createInterface({ input: child.stdout });
  return new Promise((resolve, reject) => {
    lines.once('line', (line) => resolve(JSON.parse(line) as Started));
    child.once('exit', (code) => reject(new Error(`the broker ended with ${code}`)));
  });
}

function asking({ url, caFile }: Started, agent: Agent): Ask {
  const ca = readFileSync(caFile, 'utf8');
  return ({ key, method, at, body }) =>
    new Promise((resolve, reject) => {
      const text = body === undefined ? '' : JSON.stringify(body);
      const headers = {
        authorization: `Bearer ${key}`,
        ...(text !== '' && { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }),
      };
      const outgoing = request(url + at, { agent, ca, method, headers }, (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('error', reject);
        response.on('end', () =>
          resolve({ status: response.statusCode ?? 0, body: JSON.parse(Buffer.concat(chunks).toString('utf8')) }),
        );
      });
      outgoing.on('error', reject);
      outgoing.end(text);
    });
}

/** The first key of a new tenant, without limits that matter. */
async function tenant(ask: Ask, { operatorKey: key }: Started, name: string): Promise<string> {
  const body = { name, limits: { requestsPerMinute: 1_000_000 } };
  const { status, body: answer } = await ask({ key, method: 'POST', at: '/v1/tenants', body });
  if (status !== 201) throw new Error(`making tenant ${name}: ${status} ${JSON.stringify(answer)}`);
  return answer.firstKey.secret;
}

/** Makes join tokens, each with an audit record; how many a second. */
async function pour(ask: Ask, key: string, count: number): Promise<number> {
  const startedAt = performance.now();
  let next = 0;
  await Promise.all(
    Array.from({ length: tokenClients }, async () => {
      while (next < count) {
        next += 1;
        await mustMakeToken(ask, key, next);
      }
    }),
  );
  return (count * 1_000) / (performance.now() - startedAt);
}

async function mustMakeToken(ask: Ask, key: string, n: number): Promise<void> {
  const { status } = await ask({ key, method: 'POST', at: '/v1/join-tokens', body: { cluster: `c-${n}` } });
  if (status !== 201) throw new Error(`a join token: ${status}`);
}

async function tokensPerSecond(ask: Ask, key: string): Promise<number> {
  const startedAt = performance.now();
  let made = 0;
  await Promise.all(
    Array.from({ length: tokenClients }, async () => {
      while (performance.now() - startedAt < tokenSeconds * 1_000) {
        await mustMakeToken(ask, key, made);
        made += 1;
      }
    }),
  );
  return (made * 1_000) / (performance.now() - startedAt);
}

const questions: readonly Omit<Call, 'key'>[] = [
  { method: 'GET', at: '/v1/clusters?limit=50' },
  { method: 'GET', at: '/v1/tenant' },
  { method: 'GET', at: '/v1/events?limit=50' },
  { method: 'POST', at: '/v1/join-tokens', body: { cluster: 'new' } },
];

/** Durations in milliseconds, ascending, from the moment each request should have been sent. */
async function load(ask: Ask, key: string, forSeconds: number): Promise<readonly number[]> {
  const times: number[] = [];
  const open: Promise<unknown>[] = [];
  const startedAt = performance.now();
  for (let i = 0; i < perSecond * forSeconds; i += 1) {
    const due = startedAt + (i * 1_000) / perSecond;
    await until(due);
    const question = questions[i % questions.length] ?? { method: 'GET', at: '/v1/tenant' };
    open.push(
      ask({ ...question, key }).then(({ status }) => {
        if (status >= 400) throw new Error(`${question.method} ${question.at}: ${status}`);
        times.push(performance.now() - due);
      }),
    );
  }
  await Promise.all(open);
  return times.sort((a, b) => a - b);
}

const until = (at: number): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, Math.max(0, at - performance.now())));

/** Runs until what it returns is called. */
function abuse(ask: Ask, key: string, counts: { count: number; asked: number }): () => Promise<void> {
  let stopped = false;
  const note = ({ status }: Answered): void => {
    counts.asked += 1;
    if (status === 429) counts.count += 1;
  };
  const view = async (): Promise<void> => {
    let cursor: string | undefined;
    while (!stopped) {
      const next = performance.now() + (viewers * 1_000) / viewsPerSecond;
      const more = cursor === undefined ? '' : `&cursor=${cursor}`;
      const answer = await ask({ key, method: 'GET', at: `/v1/audit?subject=none&limit=1${more}` });
      note(answer);
      cursor = answer.body.cursor;
      await until(next);
    }
  };
  const poll = async (): Promise<void> => {
    while (!stopped) {
      const next = performance.now() + 8_000;
      note(await ask({ key, method: 'GET', at: '/v1/events?subject=none&wait=5' }));
      if (!stopped) await until(next);
    }
  };
  const running = [...Array.from({ length: viewers }, view), ...Array.from({ length: polls }, poll)];
  return async () => {
    stopped = true;
    await Promise.all(running);
  };
}
