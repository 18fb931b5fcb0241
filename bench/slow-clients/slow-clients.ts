/**
 * A local broker under clients that are slow or broken, for ten minutes: what it holds in descriptors and memory, and the slope of both after the deadlines of
 * connections are over once. A client that behaves asks all the while. In the end all clients leave, and what is left is compared with the beginning.
 */
import { readdirSync } from 'node:fs';
import net from 'node:net';
import { loadavg } from 'node:os';
import { performance } from 'node:perf_hooks';
import tls from 'node:tls';
import type { BrokerMemory } from '../api/inside.ts';
import { type LocalBroker, load, until, withBroker } from '../api/local-broker.ts';
import { type BenchResult, thisMachine } from '../result.ts';
import { quantile } from '../swarm/scenario.ts';
import { slopePerMinute } from './slope.ts';

/** New ones a second, of each kind. */
const perSecond = 2;
const politePerSecond = 5;
const sampleMs = 5_000;
/** Longer than any deadline of a connection (docs/broker.md; a body has 300 s), so that as many end as begin. */
const settledAfterMs = 330_000;
/** Seconds. */
const shortest = 450;

interface Options {
  readonly root: string;
  readonly seconds?: number | undefined;
  readonly log: (line: string) => void;
}

interface Sample {
  readonly ms: number;
  readonly descriptors: number;
  readonly memory: BrokerMemory;
}

type Client = (target: Target) => net.Socket;

interface Target {
  readonly host: string;
  readonly port: number;
  readonly ca: string;
  readonly key: string;
}

const secure = ({ host, port, ca }: Target): tls.TLSSocket =>
  tls.connect({ host, port, ca, servername: 'localhost', rejectUnauthorized: false });

/** Writes a letter a second for as long as it may. */
function trickle(socket: net.Socket, text: string): net.Socket {
  let at = 0;
  const timer = setInterval(() => {
    if (socket.destroyed || at >= text.length) return clearInterval(timer);
    socket.write(text[at] ?? '');
    at += 1;
  }, 1_000);
  socket.once('close', () => clearInterval(timer));
  return socket;
}

const leavesAfter = (socket: net.Socket, ms: number): net.Socket => {
  const timer = setTimeout(() => socket.destroy(), ms);
  socket.once('close', () => clearTimeout(timer));
  return socket;
};

const head = (key: string, line: string, more = ''): string =>
  `${line} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${key}\r\n${more}\r\n`;

const kinds: Readonly<Record<string, Client>> = {
  'connects and says nothing': ({ host, port }) => net.connect(port, host),
  'sends what is no TLS': ({ host, port }) => {
    const socket = net.connect(port, host);
    socket.write('GET / HTTP/1.1\r\n\r\n');
    return socket;
  },
  'leaves in the middle of the TLS handshake': (target) => leavesAfter(secure(target), 3),
  'says nothing after the TLS handshake': secure,
  'leaves after the TLS handshake': (target) => leavesAfter(secure(target), 2_000),
  'sends its header a letter a second': (target) =>
    trickle(secure(target), head(target.key, 'GET /v1/clusters', `x-slow: ${'a'.repeat(4_000)}\r\n`)),
  'sends its body a letter a second': (target) => {
    const socket = secure(target);
    socket.write(
      head(target.key, 'POST /v1/join-tokens', 'content-type: application/json\r\ncontent-length: 4000\r\n'),
    );
    return trickle(socket, ' '.repeat(4_000));
  },
  'asks and never reads the answer': (target) => {
    const socket = secure(target);
    socket.pause();
    socket.write(head(target.key, 'GET /v1/openapi.json').repeat(8));
    return socket;
  },
  'waits for news and leaves': (target) => {
    const socket = secure(target);
    socket.write(head(target.key, 'GET /v1/events?subject=none&wait=20'));
    return leavesAfter(socket, 1_000);
  },
  'asks for a WebSocket without a signature': (target) => {
    const socket = secure(target);
    const upgrade =
      'connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n';
    socket.write(head(target.key, 'GET /v1/agent/notify', upgrade));
    return socket;
  },
};

export function run({ root, seconds = 600, log }: Options): Promise<BenchResult> {
  if (seconds < shortest) throw new Error(`--seconds is ${seconds}; a slope needs ${shortest} or more`);
  return withBroker(root, 16, async (broker) => {
    const { hostname, port } = new URL(broker.url);
    const target: Target = { host: hostname, port: Number(port), ca: broker.ca, key: await tenantKey(broker) };
    const polite = (forSeconds: number) =>
      load((call) => broker.ask(broker.key, call), {
        rate: politePerSecond,
        seconds: forSeconds,
        question: () => ({ method: 'GET', at: '/v1/clusters' }),
      });
    await polite(10);
    const before = await sampleOf(broker, 0, 'collected');
    const open = new Set<net.Socket>();
    const samples: Sample[] = [];
    const startedAt = performance.now();
    const endsAt = startedAt + seconds * 1_000;
    let started = 0;
    const asking = polite(seconds);
    let nextSampleAt = startedAt;
    for (let tick = 0; performance.now() < endsAt; tick += 1) {
      for (const client of Object.values(kinds)) {
        for (let i = 0; i < perSecond; i += 1) {
          const socket = client(target);
          started += 1;
          open.add(socket);
          // A broken connection is what the bench is about.
          socket.on('error', () => undefined);
          socket.once('close', () => open.delete(socket));
        }
      }
      if (performance.now() >= nextSampleAt) {
        nextSampleAt += sampleMs;
        const sample = await sampleOf(broker, performance.now() - startedAt, 'memory');
        samples.push(sample);
        if (samples.length % 12 === 0) log(`${(sample.ms / 1_000).toFixed(0)} s: ${inWords(sample)}`);
      }
      await until(startedAt + (tick + 1) * 1_000);
    }
    const answers = await asking;
    const settled = samples.filter(({ ms }) => ms >= settledAfterMs);
    const slopeOf = (some: readonly Sample[], of: (sample: Sample) => number) =>
      slopePerMinute(some.map((sample) => [sample.ms, of(sample)]));
    const slope = (of: (sample: Sample) => number) => slopeOf(settled, of);
    const secondHalf = settled.slice(settled.length >> 1);
    log(`${started} clients came, ${open.size} are still connected; all leave`);
    for (const socket of open) socket.destroy();
    await until(performance.now() + 15_000);
    const after = await sampleOf(broker, performance.now() - startedAt, 'memory');
    const kept = await sampleOf(broker, performance.now() - startedAt, 'collected');
    log(`after all have left: ${inWords(after)}; after garbage collection: ${inWords(kept)}`);
    const descriptorsPerMinute = slope(({ descriptors }) => descriptors);
    return {
      name: 'slow-clients',
      unit: 'descriptors a minute that a local broker gains while slow and broken clients come and go (0 is the aim)',
      value: descriptorsPerMinute,
      samples: [descriptorsPerMinute],
      phases: {
        'MiB resident gained a minute': slope(({ memory }) => memory.rss),
        'MiB of objects and buffers gained a minute': slope(({ memory }) => reachable(memory)),
        'MiB of the native rest gained a minute': slope(({ memory }) => native(memory)),
        'MiB of the native rest gained a minute, second half': slopeOf(secondHalf, ({ memory }) => native(memory)),
        'MiB of the native rest at most': Math.max(...samples.map(({ memory }) => native(memory))),
        'MiB of the native rest at the beginning': native(before.memory),
        'MiB of the native rest after all have left': native(kept.memory),
        'MiB resident at most': Math.max(...samples.map(({ memory }) => memory.rss)),
        'MiB of objects and buffers at most': Math.max(...samples.map(({ memory }) => reachable(memory))),
        'descriptors at the beginning': before.descriptors,
        'descriptors at most': Math.max(...samples.map(({ descriptors }) => descriptors)),
        'descriptors after all have left': after.descriptors,
        'MiB resident at the beginning': before.memory.rss,
        'MiB resident after all have left': after.memory.rss,
        'MiB resident after garbage collection': kept.memory.rss,
        'MiB of objects and buffers at the beginning': reachable(before.memory),
        'MiB of these that are kept for clients that have left': reachable(kept.memory) - reachable(before.memory),
        'clients that came': started,
        'requests of the client that behaves': answers.times.length,
        'of these failed': answers.failed.length,
        'P99 of these, ms': quantile(answers.times, 0.99),
        seconds,
      },
      raw: {
        samples,
        kept,
        failed: answers.failed.slice(0, 20),
        load: loadavg(),
        // MALLOC_ARENA_MAX and others, which the broker inherits.
        allocator: Object.fromEntries(Object.entries(process.env).filter(([name]) => name.startsWith('MALLOC_'))),
        perSecond,
        kinds: Object.keys(kinds),
      },
      machine: thisMachine(root),
    };
  });
}

async function tenantKey({ ask, operatorKey }: LocalBroker): Promise<string> {
  const body = { name: 'slow', limits: { requestsPerMinute: 1_000_000 } };
  const { status, body: answer } = await ask(operatorKey, { method: 'POST', at: '/v1/tenants', body });
  if (status !== 201) throw new Error(`making a tenant: ${status} ${JSON.stringify(answer)}`);
  return answer.firstKey.secret;
}

const reachable = ({ heapUsed, external }: BrokerMemory): number => heapUsed + external;

/** Resident and neither V8's heap nor a buffer: TLS, SQLite, code, and what the allocator keeps. */
const native = ({ rss, heapTotal, external }: BrokerMemory): number => rss - heapTotal - external;

async function sampleOf(broker: LocalBroker, ms: number, of: 'memory' | 'collected'): Promise<Sample> {
  const memory = await broker.memory(of);
  return { ms, descriptors: readdirSync(`/proc/${broker.pid}/fd`).length, memory };
}

function inWords({ descriptors, memory }: Sample): string {
  const { rss, heapUsed, arrayBuffers, external, resources } = memory;
  const sockets = resources.TCPSocketWrap ?? 0;
  const mib = [`${rss.toFixed(0)} MiB resident`, `heap ${heapUsed.toFixed(0)}`, `buffers ${arrayBuffers.toFixed(0)}`];
  mib.push(`external ${external.toFixed(0)}`, `native ${native(memory).toFixed(0)}`);
  return `${descriptors} descriptors, ${mib.join(', ')}, ${sockets} sockets, ${resources.Timeout ?? 0} timers`;
}
