/** A broker of one process for benches of its API: started in a folder of its own, asked over HTTPS, ended with everything that it wrote. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { Agent, request } from 'node:https';
import os from 'node:os';
import path from 'node:path';
import { performance } from 'node:perf_hooks';
import { createInterface } from 'node:readline';
import type { BrokerMemory, Question, Served } from './inside.ts';

interface Started {
  readonly url: string;
  readonly key: string;
  readonly operatorKey: string;
  readonly caFile: string;
  readonly pid: number;
}

export interface Call {
  readonly method: string;
  readonly at: string;
  readonly body?: unknown;
}

export interface Answered {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: answers of every shape
  readonly body: any;
}

export type Ask = (key: string, call: Call) => Promise<Answered>;

export interface LocalBroker extends Started {
  readonly ca: string;
  readonly ask: Ask;
  /** One question at a time. */
  readonly memory: (of: 'memory' | 'collected') => Promise<BrokerMemory>;
  readonly served: () => Promise<Served>;
}

export async function withBroker<T>(
  root: string,
  sockets: number,
  work: (broker: LocalBroker) => Promise<T>,
): Promise<T> {
  const dir = mkdtempSync(path.join(os.tmpdir(), 'isthmus-bench-api-'));
  const script = path.join(root, 'scripts', 'run.mjs');
  const child = spawn(process.execPath, ['--expose-gc', script, 'bench/api/broker-process.ts', dir], {
    stdio: ['pipe', 'pipe', 'inherit', 'ipc'],
  });
  const agent = new Agent({ keepAlive: true, maxSockets: sockets });
  try {
    const started = await whereItIs(child);
    const ca = readFileSync(started.caFile, 'utf8');
    const answerTo = <T>(question: Question): Promise<T> =>
      new Promise((resolve, reject) => {
        child.once('message', (answer) => resolve(answer as T));
        child.send(question, (error) => error && reject(error));
      });
    return await work({
      ...started,
      ca,
      ask: asking(started.url, ca, agent),
      memory: (of) => answerTo(of),
      served: () => answerTo('served'),
    });
  } finally {
    agent.destroy();
    child.stdin?.end();
    await new Promise((resolve) => (child.exitCode === null ? child.once('exit', resolve) : resolve(undefined)));
    rmSync(dir, { recursive: true, force: true });
  }
}

function whereItIs(child: ChildProcess): Promise<Started> {
  if (child.stdout === null) throw new Error('the broker has no output');
  const lines = createInterface({ input: child.stdout });
  return new Promise((resolve, reject) => {
    lines.once('line', (line) => resolve(JSON.parse(line) as Started));
    child.once('exit', (code) => reject(new Error(`the broker ended with ${code}`)));
  });
}

export const asking =
  (url: string, ca: string, agent: Agent): Ask =>
  (key, { method, at, body }) =>
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

export interface Load {
  /** Durations of those that were answered with success in milliseconds, ascending, from the moment each should have been sent. */
  readonly times: readonly number[];
  readonly failed: readonly string[];
}

/** Sends on time whether or not earlier ones were answered. */
export async function load(
  ask: (call: Call) => Promise<Answered>,
  {
    rate,
    seconds,
    question,
  }: { readonly rate: number; readonly seconds: number; readonly question: (n: number) => Call },
): Promise<Load> {
  const times: number[] = [];
  const failed: string[] = [];
  const open: Promise<unknown>[] = [];
  const startedAt = performance.now();
  for (let n = 0; n < rate * seconds; n += 1) {
    const due = startedAt + (n * 1_000) / rate;
    await until(due);
    const call = question(n);
    const fail = (why: unknown) => void failed.push(`${call.method} ${call.at}: ${why}`);
    open.push(
      ask(call).then(
        ({ status }) => (status < 400 ? void times.push(performance.now() - due) : fail(status)),
        (error: Error) => fail(error.message),
      ),
    );
  }
  await Promise.all(open);
  return { times: times.sort((a, b) => a - b), failed };
}

export const until = (at: number): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, Math.max(0, at - performance.now())));
