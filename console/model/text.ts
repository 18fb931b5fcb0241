/** How values are written for readers: times in their zone, quantities, labels. */
import { addResources, subtractQuantities, tryParseQuantity } from '#shared/domain/quantity.ts';

type Quantities = Readonly<Record<string, string>>;

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;

/** `3 min ago`, `in 2 h`; up to five seconds either way is `now`. */
export function relative(time: string, now: number): string {
  const ms = now - Date.parse(time);
  const size = Math.abs(ms);
  if (size < 5_000) return 'now';
  const [count, unit] =
    size < minute
      ? [size / 1_000, 's']
      : size < hour
        ? [size / minute, 'min']
        : size < 2 * day
          ? [size / hour, 'h']
          : [size / day, 'd'];
  const text = `${Math.floor(count)} ${unit}`;
  return ms < 0 ? `in ${text}` : `${text} ago`;
}

/** In the zone of the reader. */
export const absolute = (time: string): string =>
  new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' }).format(new Date(time));

const known = ['cpu', 'memory', 'pods'];
const rank = (name: string): number => (known.includes(name) ? known.indexOf(name) : known.length);

export const resourceNames = (...all: readonly Quantities[]): readonly string[] =>
  [...new Set(all.flatMap((each) => Object.keys(each)))].sort((a, b) => rank(a) - rank(b) || a.localeCompare(b));

/** `cpu 2, memory 2Gi`; with nothing in it, `otherwise`. */
export const quantities = (of: Quantities | undefined, otherwise = 'not limited'): string => {
  const names = resourceNames(of ?? {});
  return names.length === 0 ? otherwise : names.map((name) => `${name} ${of?.[name]}`).join(', ');
};

export const sumOf = (all: readonly Quantities[]): Quantities => all.reduce<Quantities>(addResources, {});

/** From 0 to 1; undefined when one of the two is no quantity or the whole is nothing. */
export function share(part: string, whole: string): number | undefined {
  const [a, b] = [tryParseQuantity(part), tryParseQuantity(whole)];
  if (a === undefined || b === undefined || b <= 0n) return undefined;
  return Math.max(0, Math.min(1, Number((a * 10_000n) / b) / 10_000));
}

/** What is left; undefined when one of the two is no quantity or the part is more than the whole. */
export function left(part: string, whole: string): string | undefined {
  const [a, b] = [tryParseQuantity(part), tryParseQuantity(whole)];
  return a === undefined || b === undefined || a > b ? undefined : subtractQuantities(whole, part);
}

const numberOf = (quantity: string | undefined): number => Number(tryParseQuantity(quantity ?? '') ?? -1n);
/** For sorting. */
export const amount = (of: Quantities | undefined, resource: string): number => numberOf(of?.[resource]);

/** `key=value`, one each. */
export const labelTexts = (labels: Quantities): readonly string[] =>
  Object.entries(labels).map(([key, value]) => `${key}=${value}`);

/** From `a=b, c=d`; throws naming the one that is none. */
export function labelsIn(text: string): Record<string, string> {
  const parts = text
    .split(/[,\n]/)
    .map((part) => part.trim())
    .filter((part) => part !== '');
  return Object.fromEntries(
    parts.map((part) => {
      const at = part.indexOf('=');
      if (at < 1) throw new Error(`label ${JSON.stringify(part)} is no KEY=VALUE`);
      return [part.slice(0, at), part.slice(at + 1)];
    }),
  );
}
