/**
 * The API in local mode, as a process of its own: 200 requests a second, sent on time whether or not earlier ones were answered, against a
 * broker with a tenant of a hundred clusters; then its memory with a thousand agents connected over real WebSockets.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { Agent, request } from 'node:https';
import os from 'node:os';
import path from 'node:path';
import { performance } from 'node:perf_hooks';
import { createInterface } from 'node:readline';
import { ScriptedAgent } from '#functions/local/scripted-agent.ts';
import { type BenchResult, median, thisMachine } from '../result.ts';
import { quantile } from '../swarm/scenario.ts';

const perSecond = 200;
const warmUpSeconds = 5;
const seconds = 30;
const known = 100;
const connected = 1_000;

interface Options {
  readonly root: string;
  readonly runs: number | undefined;
  readonly log: (line: string) => void;
}

interface Started {
  readonly url: string;
  readonly key: string;
  readonly caFile: string;
  readonly pid: number;
}

export async function run({ root, runs = 3, log }: Options): Promise<BenchResult> {
  const dir = mkdtempSync(path.join(os.tmpdir(), 'isthmus-bench-api-'));
  const script = path.join(root, 'scripts', 'run.mjs');
  const child = spawn(process.execPath, [script, 'bench/api/broker-process.ts', dir], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  try {
    const broker = await started(child);
    const ca = readFileSync(broker.caFile, 'utf8');
    const client = new Client(broker, ca);
    log(`broker at ${broker.url}; ${known} clusters enrol`);
    const peers = await enrolMany(client, ca, 0, known);
    const rssIdle = residentMiB(broker.pid);
    await client.load(perSecond, warmUpSeconds);
    const p99: number[] = [];
    const all: number[] = [];
    for (let round = 0; round < runs; round += 1) {
      const times = await client.load(perSecond, seconds);
      p99.push(quantile(times, 0.99));
      all.push(...times);
      log(`round ${round + 1}: P50 ${quantile(times, 0.5).toFixed(1)} ms, P99 ${quantile(times, 0.99).toFixed(1)} ms`);
    }
    all.sort((a, b) => a - b);
    log(`${connected} agents connect`);
    const rest = await enrolMany(client, ca, known, connected - known);
    const sockets = [];
    for (const agent of [...peers, ...rest]) sockets.push(await agent.connect());
    const rssConnected = residentMiB(broker.pid);
    const busy = await client.load(perSecond, 10);
    for (const socket of sockets) socket.terminate();
    client.close();
    return {
      name: 'api',
      unit: `ms, P99 at ${perSecond} requests a second (target 50)`,
      value: median(p99),
      samples: p99,
      phases: {
        'P50 ms': quantile(all, 0.5),
        'P90 ms': quantile(all, 0.9),
        'worst ms': all.at(-1) ?? Number.NaN,
        [`P99 ms with ${connected} agents connected`]: quantile(busy, 0.99),
        'MiB resident, 100 clusters, none connected': rssIdle,
        [`MiB resident, ${connected} agents connected`]: rssConnected,
        'requests that failed': client.failed,
      },
      machine: thisMachine(root),
    };
  } finally {
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

async function enrolMany(client: Client, ca: string, from: number, count: number): Promise<ScriptedAgent[]> {
  const agents: ScriptedAgent[] = [];
  for (let i = from; i < from + count; i += 1) {
    const { token } = (await client.call('POST', '/v1/join-tokens', { cluster: `c-${i}` })) as {
      readonly token: string;
    };
    const agent = new ScriptedAgent(token, ca);
    const { status } = await agent.enroll();
    if (status !== 200) throw new Error(`enrolling c-${i}: ${status}`);
    agents.push(agent);
  }
  return agents;
}

/** What a portal asks: lists, single clusters and peerings, the feed, and now and then a change. */
const questions: readonly ((n: number) => readonly [method: string, path: string, body?: unknown])[] = [
  () => ['GET', '/v1/clusters?limit=50'],
  (n) => ['GET', `/v1/clusters/c-${n % known}`],
  () => ['GET', '/v1/peerings?limit=50'],
  () => ['GET', '/v1/events?limit=50'],
  (n) => ['GET', `/v1/clusters/c-${(n * 7) % known}`],
  () => ['GET', '/v1/tenant'],
  () => ['GET', '/v1/audit?limit=20'],
  (n) => [
    'POST',
    '/v1/peerings',
    { consumer: `c-${(2 * n) % known}`, provider: `c-${(2 * n + 1) % known}`, resources: { cpu: '1' } },
  ],
  (n) => ['GET', `/v1/clusters/c-${(n * 3) % known}`],
  (n) => ['POST', '/v1/join-tokens', { cluster: `new-${n}` }],
];

class Client {
  readonly #agent: Agent;
  readonly #broker: Started;
  #sent = 0;
  failed = 0;

  constructor(broker: Started, ca: string) {
    this.#broker = broker;
    this.#agent = new Agent({ ca, keepAlive: true, maxSockets: 64 });
  }

  close(): void {
    this.#agent.destroy();
  }

  call(method: string, at: string, body?: unknown): Promise<unknown> {
    const text = body === undefined ? '' : JSON.stringify(body);
    const headers = {
      authorization: `Bearer ${this.#broker.key}`,
      ...(text !== '' && { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }),
    };
    return new Promise((resolve, reject) => {
      const outgoing = request(this.#broker.url + at, { agent: this.#agent, method, headers }, (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('error', reject);
        response.on('end', () => {
          const answer = Buffer.concat(chunks).toString('utf8');
          if ((response.statusCode ?? 0) >= 400) reject(new Error(`${method} ${at}: ${response.statusCode} ${answer}`));
          else resolve(JSON.parse(answer));
        });
      });
      outgoing.on('error', reject);
      outgoing.end(text);
    });
  }

  /** Durations in milliseconds, ascending, from the moment each request should have been sent. */
  async load(rate: number, forSeconds: number): Promise<readonly number[]> {
    const times: number[] = [];
    const open: Promise<unknown>[] = [];
    const startedAt = performance.now();
    for (let i = 0; i < rate * forSeconds; i += 1) {
      const due = startedAt + (i * 1_000) / rate;
      const wait = due - performance.now();
      if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
      this.#sent += 1;
      const ask = questions[this.#sent % questions.length];
      if (ask === undefined) continue;
      const [method, at, body] = ask(this.#sent);
      const done = this.call(method, at, body).then(
        () => void times.push(performance.now() - due),
        () => {
          this.failed += 1;
        },
      );
      open.push(done);
    }
    await Promise.all(open);
    return times.sort((a, b) => a - b);
  }
}

function residentMiB(pid: number): number {
  const kib = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  return Number(kib) / 1_024;
}
