/**
 * What the process of a measured broker says about itself over IPC. Times inside tell the broker's own share from that of a client that
 * has to share two cores with it, and waiting for a core tells the machine's.
 */
import { subscribe } from 'node:diagnostics_channel';
import { readFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { monitorEventLoopDelay, performance } from 'node:perf_hooks';

/** `collected`: memory after garbage collection. */
export type Question = 'memory' | 'collected' | 'served';

/** In MiB; what of `rss` is in none of the others is native: TLS, SQLite, code, and what the allocator keeps. */
export interface BrokerMemory {
  readonly rss: number;
  readonly heapUsed: number;
  readonly heapTotal: number;
  /** With `arrayBuffers` in it. */
  readonly external: number;
  readonly arrayBuffers: number;
  /** Handles that keep the process alive, by kind: sockets, timers. */
  readonly resources: Readonly<Record<string, number>>;
}

/** Since it was asked for last. */
export interface Served {
  /** Milliseconds from a request's header to the end of its answer, ascending, by the tenant that its API key names. */
  readonly times: Readonly<Record<string, readonly number[]>>;
  /** Milliseconds by which timers of 1 ms were late, P99. */
  readonly loopDelayP99: number;
  /** Milliseconds that the main thread ran, and that it was ready to run and had no core. */
  readonly ranMs: number;
  readonly waitedForCoreMs: number;
}

export function answerQuestions(): void {
  const startedAt = new WeakMap<object, number>();
  const times = new Map<string, number[]>();
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  let scheduledBefore = scheduled();
  subscribe('http.server.request.start', (message) => {
    startedAt.set((message as { readonly request: object }).request, performance.now());
  });
  subscribe('http.server.response.finish', (message) => {
    const { request } = message as { readonly request: IncomingMessage };
    const [, tenant] = /^Bearer isk_([^_]+)_/.exec(request.headers.authorization ?? '') ?? [];
    const from = startedAt.get(request);
    if (tenant === undefined || from === undefined) return;
    times.set(tenant, [...(times.get(tenant) ?? []), performance.now() - from]);
  });

  function served(): Served {
    const now = scheduled();
    const answer = {
      times: Object.fromEntries([...times].map(([tenant, all]) => [tenant, all.sort((a, b) => a - b)])),
      loopDelayP99: delay.percentile(99) / 1e6,
      ranMs: now.ranMs - scheduledBefore.ranMs,
      waitedForCoreMs: now.waitedForCoreMs - scheduledBefore.waitedForCoreMs,
    };
    times.clear();
    delay.reset();
    scheduledBefore = now;
    return answer;
  }

  process.on('message', (question: Question) => {
    if (question === 'collected') for (let n = 0; n < 2; n += 1) globalThis.gc?.();
    process.send?.(question === 'served' ? served() : memory());
  });
}

function memory(): BrokerMemory {
  const mib = (bytes: number) => bytes / 2 ** 20;
  const { rss, heapUsed, heapTotal, external, arrayBuffers } = process.memoryUsage();
  const resources: Record<string, number> = {};
  for (const kind of process.getActiveResourcesInfo()) resources[kind] = (resources[kind] ?? 0) + 1;
  return {
    rss: mib(rss),
    heapUsed: mib(heapUsed),
    heapTotal: mib(heapTotal),
    external: mib(external),
    arrayBuffers: mib(arrayBuffers),
    resources,
  };
}

/** Of the main thread, by the kernel. */
function scheduled(): { readonly ranMs: number; readonly waitedForCoreMs: number } {
  const [ran, waited] = readFileSync(`/proc/self/task/${process.pid}/schedstat`, 'utf8').split(' ');
  return { ranMs: Number(ran) / 1e6, waitedForCoreMs: Number(waited) / 1e6 };
}
