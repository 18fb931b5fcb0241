/** The side of a network test that calls: each probe as often as it takes, a few at a time. */
import { execFile } from 'node:child_process';
import { request } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import {
  type Failure,
  type HttpProbe,
  largeBytes,
  type PingProbe,
  type Probe,
  type ProbeOrder,
  type ProbeResult,
} from '#shared/domain/network-probe.ts';

const atATime = 8;
/** Services and routes are in place a moment after their objects. */
const pauseMs = 500;
/** Headers of IPv4 and ICMP. */
const pingHeaders = 28;

type Attempt = Omit<ProbeResult, 'id' | 'ms'>;
interface Limits {
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/** Tells each result as it comes. */
export async function runProbes(
  { probes, timeoutMs, patienceMs }: ProbeOrder,
  tell: (result: ProbeResult) => void,
  signal: AbortSignal,
): Promise<void> {
  const queue = [...probes];
  const worker = async (): Promise<void> => {
    for (let probe = queue.shift(); probe !== undefined && !signal.aborted; probe = queue.shift())
      tell(await persist(probe, patienceMs, { timeoutMs, signal }));
  };
  await Promise.all(Array.from({ length: Math.min(atATime, queue.length) }, worker));
}

async function persist(probe: Probe, patienceMs: number, limits: Limits): Promise<ProbeResult> {
  const begun = performance.now();
  for (;;) {
    const started = performance.now();
    const attempt = probe.kind === 'http' ? await call(probe, limits) : await ping(probe, limits);
    const ended = performance.now();
    if (attempt.ok || ended - begun >= patienceMs || limits.signal.aborted) {
      return { id: probe.id, ms: Math.round(ended - (attempt.ok ? started : begun)), ...attempt };
    }
    await pause(pauseMs);
  }
}

async function call({ url, large, times }: HttpProbe, limits: Limits): Promise<Attempt> {
  const answeredBy = new Set<string>();
  const sources = new Set<string>();
  const seen = () => ({ answeredBy: [...answeredBy], sources: [...sources] });
  try {
    for (let i = 0; i < times; i += 1) {
      const { pod, source } = parseAnswer(await exchange(url, large, limits));
      if (pod !== undefined) answeredBy.add(pod);
      if (source !== undefined) sources.add(source);
    }
    return { ok: true, ...seen() };
  } catch (error) {
    return { ok: false, ...seen(), ...failureOf(error) };
  }
}

function exchange(url: string, large: boolean, { timeoutMs, signal }: Limits): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = { method: large ? 'POST' : 'GET', agent: false, signal } as const;
    const sent = request(url, options, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', fail);
      response.on('end', () => {
        clearTimeout(timer);
        resolve(Buffer.concat(chunks).toString());
      });
    });
    const fail = (error: Error): void => {
      clearTimeout(timer);
      reject(error);
    };
    const timer = setTimeout(
      () => sent.destroy(Object.assign(new Error(`no answer in ${timeoutMs} ms`), { code: 'ETIMEDOUT' })),
      timeoutMs,
    );
    sent.on('error', fail);
    sent.end(large ? Buffer.alloc(largeBytes, 'x') : undefined);
  });
}

/** Hosts that are no test pods answer what they like: that they do is enough. */
function parseAnswer(text: string): { readonly pod?: string; readonly source?: string } {
  try {
    const { pod, source } = JSON.parse(text) as Record<string, unknown>;
    return { ...(typeof pod === 'string' && { pod }), ...(typeof source === 'string' && { source }) };
  } catch {
    return {};
  }
}

const meaning: Readonly<Record<string, Failure>> = {
  ETIMEDOUT: 'timeout',
  ECONNREFUSED: 'refused',
  EHOSTUNREACH: 'unreachable',
  ENETUNREACH: 'unreachable',
};

const failureOf = (error: unknown): { readonly failure: Failure; readonly message: string } => ({
  failure: meaning[(error as NodeJS.ErrnoException).code ?? ''] ?? 'broken',
  message: (error as Error).message,
});

/** The program, because a raw socket is out of Node's reach. */
function ping({ address, bytes }: PingProbe, { timeoutMs, signal }: Limits): Promise<Attempt> {
  const seconds = String(Math.max(1, Math.round(timeoutMs / 1_000)));
  const args = ['-n', '-q', '-c', '1', '-W', seconds, '-M', 'do', '-s', String(bytes - pingHeaders), address];
  const none = { answeredBy: [], sources: [] };
  return new Promise((resolve) => {
    execFile('/usr/sbin/ping', args, { signal }, (error, stdout, stderr) => {
      if (error === null) return resolve({ ok: true, ...none });
      const said = `${stderr}${stdout}`.trim();
      const failure = /unreachable|No route/i.test(said) ? 'unreachable' : error.code === 1 ? 'timeout' : 'broken';
      resolve({ ok: false, ...none, failure, message: said.split('\n').at(-1) ?? error.message });
    });
  });
}
