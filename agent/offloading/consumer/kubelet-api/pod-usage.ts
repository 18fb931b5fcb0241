/** What the offloaded pods of one virtual node use, read from `metrics.k8s.io` of the provider and kept as the counters that a kubelet has. */

import { tryParseQuantity } from '#shared/domain/quantity.ts';
import { codeOf } from '#shared/errors/app-error.ts';
import { messageOf } from '#shared/errors/message-of.ts';
import type { Clock } from '#shared/ports/clock.ts';

/** The part of a `metrics.k8s.io/v1beta1` PodMetrics that we read. */
export interface PodMetrics {
  readonly metadata: { readonly name: string; readonly namespace?: string };
  /** When it was measured, RFC 3339. */
  readonly timestamp?: string;
  /** Over how long, for example `15s`. */
  readonly window?: string;
  readonly containers?: readonly {
    readonly name: string;
    readonly usage?: { readonly cpu?: string; readonly memory?: string };
  }[];
}

interface ContainerUsage {
  readonly name: string;
  /** Cores x 10^9, at the time measured. */
  readonly cpuNanoCores: number;
  /** Core nanoseconds since this process first saw the container: grows only. */
  readonly cpuTotal: number;
  readonly memoryBytes: number;
}

export interface PodUsage {
  /** As the consumer knows it. */
  readonly namespace: string;
  readonly name: string;
  readonly atMs: number;
  readonly containers: readonly ContainerUsage[];
}

export interface Usage {
  readonly pods: readonly PodUsage[];
  /** Core nanoseconds of all pods that this node ever had: grows only, also when pods go. */
  readonly cpuTotal: number;
  /** Why something is missing, for people. */
  readonly problems: readonly string[];
}

interface RemoteMetrics {
  readonly local: string;
  readonly remote: string;
}

export interface UsageDeps {
  readonly clock: Clock;
  /** GET at the provider, as text. */
  readonly getPath: (path: string, signal?: AbortSignal) => Promise<string>;
  readonly namespaces: () => readonly RemoteMetrics[];
  /** Pods of this node; anything else is not ours to tell. */
  readonly has: (namespace: string, pod: string) => boolean;
  readonly labelSelector: string;
}

/** Scrapers come in groups (resource, cadvisor, summary); the provider measures every 15 s at best. */
const freshMs = 5_000;
const nano = 1e9;

const numberOf = (quantity: string | undefined): number => {
  const value = quantity === undefined ? undefined : tryParseQuantity(quantity);
  return value === undefined ? 0 : Number(value) / nano;
};

/** Go prints none that is longer. */
const longestWindow = 32;

/** `1m30.5s` in milliseconds, 0 when unreadable. */
export function windowMs(text: string | undefined): number {
  if (text === undefined || text.length > longestWindow) return 0;
  const parts = [...text.matchAll(/([\d.]+)(h|m|s|ms)(?![a-z])/g)];
  const unit: Readonly<Record<string, number>> = { h: 3_600_000, m: 60_000, s: 1_000, ms: 1 };
  return parts.reduce((sum, [, amount, of]) => sum + Number(amount) * (unit[of ?? ''] ?? 0), 0);
}

interface Counter {
  readonly total: number;
  readonly atMs: number;
}

export class PodUsageReader {
  readonly #deps: UsageDeps;
  /** By local namespace, then by pod and container. */
  #counters = new Map<string, ReadonlyMap<string, Counter>>();
  #nodeTotal = 0;
  #last: { readonly at: number; readonly usage: Promise<Usage> } | undefined;

  constructor(deps: UsageDeps) {
    this.#deps = deps;
  }

  /** Never fails: what cannot be read is a problem in words. */
  read(signal: AbortSignal): Promise<Usage> {
    const now = this.#deps.clock.now();
    if (this.#last && now - this.#last.at < freshMs) return this.#last.usage;
    const usage = this.#read(signal);
    this.#last = { at: now, usage };
    return usage;
  }

  async #read(signal: AbortSignal): Promise<Usage> {
    const { namespaces, has } = this.#deps;
    const problems = new Set<string>();
    const answers = await Promise.all(
      namespaces().map(async ({ local, remote }) => {
        try {
          const items = await this.#ask(remote, signal);
          return { local, items: items.filter(({ metadata }) => has(local, metadata.name)) };
        } catch (error) {
          problems.add(problemOf(error, local));
          return { local, items: undefined };
        }
      }),
    );
    const before = this.#counters;
    this.#counters = new Map();
    const pods = answers.flatMap(({ local, items }) => {
      const known = before.get(local) ?? new Map<string, Counter>();
      const counters = new Map<string, Counter>();
      // Without an answer the old counters are kept, so that they continue after an outage of the metrics API.
      this.#counters.set(local, items ? counters : known);
      return (items ?? []).map((item) => this.#podUsage(local, item, known, counters));
    });
    return { pods, cpuTotal: this.#nodeTotal, problems: [...problems] };
  }

  async #ask(remote: string, signal: AbortSignal): Promise<readonly PodMetrics[]> {
    const selector = encodeURIComponent(this.#deps.labelSelector);
    const path = `/apis/metrics.k8s.io/v1beta1/namespaces/${remote}/pods?labelSelector=${selector}`;
    const { items } = JSON.parse(await this.#deps.getPath(path, signal)) as { items?: readonly PodMetrics[] };
    return items ?? [];
  }

  /** The provider tells a rate; scrapers want a counter. Between two measurements the rate is taken as constant. */
  #podUsage(
    namespace: string,
    { metadata, timestamp, window, containers }: PodMetrics,
    known: ReadonlyMap<string, Counter>,
    next: Map<string, Counter>,
  ): PodUsage {
    const parsed = Date.parse(timestamp ?? '');
    const atMs = Number.isNaN(parsed) ? this.#deps.clock.now() : parsed;
    return {
      namespace,
      name: metadata.name,
      atMs,
      containers: (containers ?? []).map(({ name, usage }): ContainerUsage => {
        const key = `${metadata.name}/${name}`;
        const cpuNanoCores = numberOf(usage?.cpu) * nano;
        const before = known.get(key);
        const elapsedMs = before ? Math.max(0, atMs - before.atMs) : windowMs(window);
        const grown = (cpuNanoCores * elapsedMs) / 1_000;
        const total = (before?.total ?? 0) + grown;
        this.#nodeTotal += grown;
        next.set(key, { total, atMs: Math.max(atMs, before?.atMs ?? 0) });
        return { name, cpuNanoCores, cpuTotal: total, memoryBytes: numberOf(usage?.memory) };
      }),
    };
  }
}

function problemOf(error: unknown, namespace: string): string {
  switch (codeOf(error)) {
    case 'kube_not_found':
      return 'the provider serves no metrics.k8s.io (no metrics server runs there)';
    case 'kube_forbidden':
      return `the provider does not let us read metrics.k8s.io of namespace ${namespace}`;
    default:
      return `metrics of namespace ${namespace} cannot be read: ${messageOf(error)}`;
  }
}
