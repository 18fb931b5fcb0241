/** How samples are kept, an hour to an item, and what becomes of them for a graph. Pure. */
import type { Sample } from '#shared/schema/protocol/samples.ts';

export const hourMs = 3_600_000;

/** In this order in a row, after the minute. May only grow. */
const fields = [
  'rttMicros',
  'packetLoss',
  'received',
  'sent',
  'cpuGranted',
  'cpuUsed',
  'memoryGranted',
  'memoryUsed',
] as const;
type Field = (typeof fields)[number];

/** The minute of the hour, then one value for each field; what is not known is null, and left out at the end. */
export type Row = readonly (number | null)[];

export interface HourRecord {
  /** Ordered by minute, each once. */
  readonly rows: readonly Row[];
}

export const hourOf = (ms: number): number => Math.floor(ms / hourMs) * hourMs;

const isKnown = (value: number | null): boolean => value !== null;

export function rowOf(sample: Sample): Row {
  const minute = Math.floor(((sample.at * 1_000) % hourMs) / 60_000);
  const values = fields.map((field) => sample[field] ?? null);
  return [minute, ...values.slice(0, values.findLastIndex(isKnown) + 1)];
}

/** Rows of the same minute are replaced: a report may come twice. */
export function withRows(before: readonly Row[], more: readonly Row[]): Row[] {
  const byMinute = new Map([...before, ...more].map((row) => [row[0], row]));
  return [...byMinute.values()].sort(([a], [b]) => (a ?? 0) - (b ?? 0));
}

export type Point = { readonly at: number } & { readonly [F in Field]?: number };

/** Ordered by time; `at` in milliseconds. */
export const pointsOf = (hour: number, { rows }: HourRecord): Point[] =>
  rows.map(([minute, ...values]) => {
    const known = fields.flatMap((field, index) => {
      const value = values[index];
      return value === null || value === undefined ? [] : [[field, value] as const];
    });
    return { at: hour + (minute ?? 0) * 60_000, ...Object.fromEntries(known) };
  });

/** One point for each step in which there is any: loss is the highest, everything else the mean. */
export function gathered(points: readonly Point[], stepMs: number): Point[] {
  const steps = new Map<number, Point[]>();
  for (const point of points) {
    const at = Math.floor(point.at / stepMs) * stepMs;
    steps.set(at, [...(steps.get(at) ?? []), point]);
  }
  return [...steps].map(([at, of]) => {
    const values = fields.flatMap((field) => {
      const known = of.flatMap((point) => point[field] ?? []);
      if (known.length === 0) return [];
      const value = field === 'packetLoss' ? Math.max(...known) : known.reduce((a, b) => a + b, 0) / known.length;
      return [[field, Math.round(value)] as const];
    });
    return { at, ...Object.fromEntries(values) };
  });
}
