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
  /**
   * Of the same requests, the milliseconds that the process ran meanwhile, ascending: how much work was done before the answer, of whichever tenant. Other
   * work on the machine does not lengthen it; waiting for the disk does not show.
   */
  readonly ran: Readonly<Record<string, readonly number[]>>;
  /** Milliseconds by which timers of 1 ms were late, P99. */
  readonly loopDelayP99: number;
  /** Milliseconds that the main thread ran, and that it was ready to run and had no core. */
  readonly ranMs: number;
  readonly waitedForCoreMs: number;
}

export function answerQuestions(): void {
  const started = new WeakMap<object, { readonly at: number; readonly ranMs: number }>();
  const times = new Map<string, number[]>();
  const ran = new Map<string, number[]>();
  const note = (to: Map<string, number[]>, tenant: string, ms: number): void => {
    const all = to.get(tenant);
    if (all) all.push(ms);
    else to.set(tenant, [ms]);
  };
  const byTenant = (of: Map<string, number[]>) =>
    Object.fromEntries([...of].map(([tenant, all]) => [tenant, all.sort((a, b) => a - b)]));
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  let scheduledBefore = scheduled();
  subscribe('http.server.request.start', (message) => {
    started.set((message as { readonly request: object }).request, { at: performance.now(), ranMs: ranMs() });
  });
  subscribe('http.server.response.finish', (message) => {
    const { request } = message as { readonly request: IncomingMessage };
    const [, tenant] = /^Bearer isk_([^_]+)_/.exec(request.headers.authorization ?? '') ?? [];
    const from = started.get(request);
    if (tenant === undefined || from === undefined) return;
    note(times, tenant, performance.now() - from.at);
    note(ran, tenant, ranMs() - from.ranMs);
  });

  function served(): Served {
    const now = scheduled();
    const answer = {
      times: byTenant(times),
      ran: byTenant(ran),
      loopDelayP99: delay.percentile(99) / 1e6,
      ranMs: now.ranMs - scheduledBefore.ranMs,
      waitedForCoreMs: now.waitedForCoreMs - scheduledBefore.waitedForCoreMs,
    };
    times.clear();
    ran.clear();
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

/** Of the process, all threads. */
function ranMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

/** Of the main thread, by the kernel. */
function scheduled(): { readonly ranMs: number; readonly waitedForCoreMs: number } {
  const [ran, waited] = readFileSync(`/proc/self/task/${process.pid}/schedstat`, 'utf8').split(' ');
  return { ranMs: Number(ran) / 1e6, waitedForCoreMs: Number(waited) / 1e6 };
}
