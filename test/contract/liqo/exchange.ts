/** The form of a written-down exchange with Liqo, and when an object says what the exchange expects of it. Pure. */
import { createHash, X509Certificate } from 'node:crypto';

export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
}

/** `at`: cluster whose API server it is about; absent where there is but one. `as` of `replicator`: with the certificate that the Tenant was given. */
export interface Step {
  /** Section of the description of Liqo. */
  readonly from: string;
  readonly by: string;
  readonly at?: 'rome' | 'milan';
  /** POST by Liqo. */
  readonly create?: Manifest;
  /** GET, change of the named fields, PUT by Liqo. */
  readonly update?: Manifest;
  /** The same of the status. */
  readonly status?: Manifest;
  readonly delete?: Manifest;
  /** What Isthmus has to bring about. */
  readonly expect?: Manifest;
  readonly absent?: Manifest;
  /** What later steps name with a dollar sign, by its path in the object. */
  readonly keep?: Readonly<Record<string, string>>;
}

export interface Exchange {
  readonly liqo: string;
  readonly isthmusIs: 'consumer' | 'provider';
  readonly steps: readonly Step[];
}

export const actionsOf = (step: Step): readonly string[] =>
  (['create', 'update', 'status', 'delete', 'expect', 'absent'] as const).filter(
    (action) => step[action] !== undefined,
  );

/** Values that are known only when the exchange runs. A string is one of them as a whole, or (`$certificate CN O`) in its words. */
export type Known = ReadonlyMap<string, string>;

const isPattern = (text: string): boolean => text === '$any' || text.startsWith('$certificate ');

function word(text: string, known: Known): string {
  if (!text.startsWith('$')) return text;
  const value = known.get(text.slice(1));
  if (value === undefined) throw new Error(`${text} is not known at this step`);
  return value;
}

/** With every known value in its place; patterns stay. */
export function filled<T>(value: T, known: Known): T {
  if (typeof value === 'string') {
    if (value === '$any') return value;
    if (!isPattern(value)) return word(value, known) as T;
    const [pattern, ...words] = value.split(' ');
    return [pattern, ...words.map((one) => word(one, known))].join(' ') as T;
  }
  if (Array.isArray(value)) return value.map((one) => filled(one, known)) as T;
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, filled(one, known)])) as T;
}

/** What of `wanted` (filled) `actual` does not say. Members more are fine; each element of a list has to be somewhere in the other. */
export function unmet(wanted: unknown, actual: unknown, at = ''): readonly string[] {
  if (typeof wanted === 'string' && isPattern(wanted)) return pattern(wanted, actual, at);
  if (Array.isArray(wanted)) {
    const list: readonly unknown[] = Array.isArray(actual) ? actual : [];
    return wanted.flatMap((one, i) =>
      list.some((other) => unmet(one, other).length === 0)
        ? []
        : [`${at}[${i}]: ${JSON.stringify(one)} is not among ${JSON.stringify(actual)}`],
    );
  }
  if (typeof wanted === 'object' && wanted !== null) {
    if (typeof actual !== 'object' || actual === null) return [`${at}: is ${JSON.stringify(actual)}`];
    const fields = actual as Readonly<Record<string, unknown>>;
    return Object.entries(wanted).flatMap(([key, value]) => unmet(value, fields[key], `${at}.${key}`));
  }
  return wanted === actual ? [] : [`${at}: is ${JSON.stringify(actual)}, not ${JSON.stringify(wanted)}`];
}

function pattern(wanted: string, actual: unknown, at: string): readonly string[] {
  if (typeof actual !== 'string' || actual === '') return [`${at}: is ${JSON.stringify(actual)}, not a text`];
  if (wanted === '$any') return [];
  const [, commonName, organization] = wanted.split(' ');
  try {
    const { subject } = new X509Certificate(Buffer.from(actual, 'base64'));
    const output = subject.split('\n').sort().join();
    return output === [`CN=${commonName}`, `O=${organization}`].sort().join()
      ? []
      : [`${at}: is a certificate of ${output}`];
  } catch {
    return [`${at}: is no certificate`];
  }
}

export function valueAt(object: unknown, path: string): string {
  const value = path
    .split('.')
    .reduce<unknown>((at, key) => (at as Record<string, unknown> | undefined)?.[key], object);
  if (typeof value !== 'string') throw new Error(`${path} is ${JSON.stringify(value)}`);
  return value;
}

/** CN of a slice's certificate (docs/design/control-plane.md#which-name-does-a-certificate-carry). */
export const sliceUserOf = (slice: string, consumer: string): string =>
  `${slice}-${createHash('sha256').update(consumer).digest('hex').slice(0, 12)}`;
