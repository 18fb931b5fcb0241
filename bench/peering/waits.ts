/** What a peering waited for and for how long, as the broker said it, until it was Ready. */
import { eventually } from '#test/harness/eventually.ts';
import type { BenchClusters } from './peering-clusters.ts';

interface Wait {
  readonly phase: string;
  readonly waitingFor: string;
  /** Seconds after the request was accepted. */
  readonly from: number;
  readonly seconds: number;
}

export interface Waits {
  /** Seconds from acceptance to Ready. */
  readonly ready: number;
  readonly waits: readonly Wait[];
}

interface Seen {
  readonly phase: string;
  readonly waitingFor: string;
}

const everyMs = 50;

/** Rejects when the peering is not Ready by the deadline, and says what it waits for. */
export async function waitsUntilReady(ask: BenchClusters['ask'], id: string, deadlineMs: number): Promise<Waits> {
  const began = performance.now();
  const seen: (Seen & { readonly from: number })[] = [];
  const ready = await eventually(
    `peering ${id} is Ready`,
    async () => {
      const { phase, waitingFor } = await ask<Seen>('GET', `/v1/peerings/${id}`);
      const from = (performance.now() - began) / 1_000;
      const last = seen.at(-1);
      if (last?.phase !== phase || last.waitingFor !== waitingFor) seen.push({ phase, waitingFor, from });
      // Told when the deadline passes.
      if (phase !== 'Ready') throw new Error(`${phase}: ${waitingFor}`);
      return from;
    },
    { withinMs: deadlineMs, everyMs },
  );
  const waits = seen
    .slice(0, -1)
    .map((one, index) => ({ ...one, seconds: (seen[index + 1]?.from ?? ready) - one.from }));
  return { ready, waits };
}

/** Steps in the order in which they were done, each with what it took after the one before, and the broker's words. */
export const waitLines = (steps: Readonly<Record<string, number>>, { waits }: Waits): readonly string[] => {
  const ordered = Object.entries(steps).sort(([, a], [, b]) => a - b);
  return [
    ...ordered.map(([what, at], index) => {
      const before = ordered[index - 1]?.[1] ?? 0;
      return `  ${at.toFixed(2).padStart(6)} s  ${what} (${(at - before).toFixed(2)} s after the step before)`;
    }),
    ...waits.map(
      ({ phase, waitingFor, from, seconds }) =>
        `  ${from.toFixed(2).padStart(6)} s  ${phase} for ${seconds.toFixed(2)} s: ${waitingFor}`,
    ),
  ];
};
