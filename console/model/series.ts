/** What was measured lately, as lines to draw and to read. Pure. */
import type { PeeringSeries } from '#shared/api-client/broker-api.ts';

export type Point = NonNullable<PeeringSeries['consumer']>[number];
type Field = Exclude<keyof Point, 'at'>;

export interface Line {
  readonly name: string;
  /** Milliseconds since the epoch, and the value; ordered. */
  readonly values: readonly (readonly [at: number, value: number])[];
}

export interface Chart {
  readonly title: string;
  readonly lines: readonly Line[];
  readonly text: (value: number) => string;
  /** Ends here at least, so that noise does not look like news. */
  readonly atLeast: number;
}

export interface Span {
  readonly from: number;
  readonly to: number;
  readonly stepMs: number;
}

export const spanOf = ({ from, to, stepSeconds }: Pick<PeeringSeries, 'from' | 'to' | 'stepSeconds'>): Span => ({
  from: Date.parse(from),
  to: Date.parse(to),
  stepMs: stepSeconds * 1_000,
});

const scaled = (value: number, base: number, units: readonly string[]): string => {
  const power = value < base ? 0 : Math.min(units.length - 1, Math.floor(Math.log(value) / Math.log(base)));
  const size = value / base ** power;
  return `${size >= 10 || power === 0 ? Math.round(size) : size.toFixed(1)} ${units[power]}`;
};
export const rateText = (bytesPerSecond: number): string =>
  scaled(bytesPerSecond, 1_000, ['B/s', 'kB/s', 'MB/s', 'GB/s']);
const memoryText = (bytes: number): string => scaled(bytes, 1_024, ['B', 'KiB', 'MiB', 'GiB', 'TiB']);
const number = (value: number): string => String(Number(value.toPrecision(3)));

function line(name: string, points: readonly Point[], field: Field): Line {
  const values = points.flatMap((point) => {
    const value = point[field];
    return value === undefined ? [] : [[Date.parse(point.at), value] as const];
  });
  return { name, values };
}

const sum = (a: number, b: number): number => a + b;
/** What several links make of one field: the slowest round trip, the highest loss, and the sum of everything else. */
const joined: Readonly<Record<Field, (a: number, b: number) => number>> = {
  rttMs: Math.max,
  packetLoss: Math.max,
  received: sum,
  sent: sum,
  cpuGranted: sum,
  cpuUsed: sum,
  memoryGranted: sum,
  memoryUsed: sum,
};

/** Of several links, as `joined` says; a field that one of them lacks is as in the other. */
export function together(all: readonly (readonly Point[])[]): Point[] {
  const byTime = new Map<string, Point>();
  for (const point of all.flat()) {
    const before = byTime.get(point.at);
    if (before === undefined) {
      byTime.set(point.at, point);
      continue;
    }
    const both = (Object.keys(joined) as Field[]).flatMap((field) => {
      const [a, b] = [before[field], point[field]];
      return a === undefined || b === undefined ? [] : [[field, joined[field](a, b)]];
    });
    byTime.set(point.at, { ...before, ...point, ...Object.fromEntries(both) });
  }
  return [...byTime.values()].sort((a, b) => Date.parse(a.at) - Date.parse(b.at));
}

/** `link`: as one end measured it; `grant`: as the provider did. `names`: of what that end receives and sends. */
export function chartsOf(
  link: readonly Point[],
  grant: readonly Point[],
  names: { readonly received: string; readonly sent: string },
): Chart[] {
  const share = (title: string, granted: Field, used: Field, text: Chart['text'], atLeast: number): Chart => ({
    title,
    lines: [line('granted', grant, granted), line('in use', grant, used)],
    text,
    atLeast,
  });
  const all: Chart[] = [
    {
      title: 'Throughput',
      lines: [line(names.sent, link, 'sent'), line(names.received, link, 'received')],
      text: rateText,
      atLeast: 1_000,
    },
    { title: 'Round trip', lines: [line('round trip', link, 'rttMs')], text: (ms) => `${number(ms)} ms`, atLeast: 1 },
    {
      title: 'Loss',
      lines: [line('lost', link, 'packetLoss')],
      text: (percent) => `${number(percent)} %`,
      atLeast: 10,
    },
    share('CPU', 'cpuGranted', 'cpuUsed', (cores) => `${number(cores)} cores`, 1),
    share('Memory', 'memoryGranted', 'memoryUsed', memoryText, 1_024 ** 2),
  ];
  return all
    .map((chart) => ({ ...chart, lines: chart.lines.filter(({ values }) => values.length > 0) }))
    .filter(({ lines }) => lines.length > 0);
}

export const topOf = ({ lines, atLeast }: Chart): number =>
  Math.max(atLeast, ...lines.flatMap(({ values }) => values.map(([, value]) => value)));

/** Of an SVG path in a box of that width and height: interrupted where more than one step is missing. */
export function pathOf(
  { values }: Line,
  { from, to, stepMs }: Span,
  top: number,
  { width, height }: { readonly width: number; readonly height: number },
): string {
  return values
    .map(([at, value], index) => {
      const before = values[index - 1]?.[0] ?? Number.NEGATIVE_INFINITY;
      const after = values[index + 1]?.[0] ?? Number.POSITIVE_INFINITY;
      const begins = at - before > 1.5 * stepMs;
      const x = (((at - from) / (to - from)) * width).toFixed(1);
      const y = ((1 - value / top) * height).toFixed(1);
      // One that stands alone is a dot.
      return `${begins ? 'M' : 'L'}${x} ${y}${begins && after - at > 1.5 * stepMs ? 'h0.1' : ''}`;
    })
    .join('');
}

/** For readers that do not see the picture: what it spans, and how it ends. */
export function wordsOf({ title, lines, text }: Chart): string {
  const each = lines.map(({ name, values }) => {
    const all = values.map(([, value]) => value);
    const last = all.at(-1) ?? 0;
    return `${name} from ${text(Math.min(...all))} to ${text(Math.max(...all))}, last ${text(last)}`;
  });
  return `${title}: ${each.join('; ')}`;
}

/** A row for each time at which any line has a value, the newest first. */
export function rowsOf({ lines }: Chart): (readonly [at: number, ...values: (number | undefined)[]])[] {
  const times = [...new Set(lines.flatMap(({ values }) => values.map(([at]) => at)))].sort((a, b) => b - a);
  const columns = lines.map(({ values }) => new Map(values));
  return times.map((at) => [at, ...columns.map((column) => column.get(at))]);
}
