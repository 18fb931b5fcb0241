/** The form of a recorded exchange with Liqo, and when an object says what the exchange expects of it. Pure. */
import { createHash, X509Certificate } from 'node:crypto';
import { readCertificateRequest } from '#agent/pki/certificate-request.ts';

export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
    readonly finalizers?: readonly string[];
    readonly ownerReferences?: readonly { readonly kind: string; readonly name: string }[];
  };
}

/** One act of one side. */
export interface Step {
  /** `isthmus`, or a program of the other side; `kubelet`, `user` and `the installation of Liqo` are what they say. */
  readonly by: string;
  /** At the API server of which cluster: Liqo runs in `rome`, Isthmus in `milan`. */
  readonly at: 'rome' | 'milan';
  /** POST by Liqo. */
  readonly create?: Manifest;
  /** What Liqo made of these parts of the object. */
  readonly update?: Manifest;
  /** The same of the status. */
  readonly status?: Manifest;
  readonly delete?: Manifest;
  /** What Isthmus has to bring about. */
  readonly expect?: Manifest;
  readonly absent?: Manifest;
}

export interface Exchange {
  readonly liqo: string;
  readonly isthmusIs: 'consumer' | 'provider';
  readonly steps: readonly Step[];
}

export const actions = ['create', 'update', 'status', 'delete', 'expect', 'absent'] as const;
export const actionsOf = (step: Step): readonly (typeof actions)[number][] =>
  actions.filter((action) => step[action] !== undefined);

/**
 * Texts by the words that stand for them, without the dollar sign. Words are whole strings: `$any`, any text; `$request CN O` and
 * `$certificate CN O`, base64 of the PEM, where a number behind them says the how manieth certificate of that subject it is; others, what they
 * are called.
 */
export type Known = ReadonlyMap<string, string>;

const anyText = 'any';
const wordIn = (text: string): string | undefined => (text.startsWith('$') ? text.slice(1) : undefined);

/** Every word in `value` but `any`, each once. */
export function wordsIn(value: unknown): readonly string[] {
  if (typeof value === 'string') {
    const word = wordIn(value);
    return word === undefined || word === anyText ? [] : [word];
  }
  if (typeof value !== 'object' || value === null) return [];
  return [...new Set(Object.values(value).flatMap(wordsIn))];
}

/** With what each word stands for in its place. */
export function filled<T>(value: T, known: Known): T {
  if (typeof value === 'string') {
    const word = wordIn(value);
    if (word === undefined) return value;
    const text = known.get(word);
    if (text === undefined) throw new Error(`${value} is not known at this step`);
    return text as T;
  }
  if (Array.isArray(value)) return value.map((one) => filled(one, known)) as T;
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, filled(one, known)])) as T;
}

/** What of `wanted` `actual` does not say. Members more are fine; each element of a list has to be somewhere in the other. */
export function unmet(wanted: unknown, actual: unknown, known: Known, at = ''): readonly string[] {
  if (typeof wanted === 'string') return unmetText(wanted, actual, known, at);
  if (Array.isArray(wanted)) {
    const list: readonly unknown[] = Array.isArray(actual) ? actual : [];
    return wanted.flatMap((one, i) =>
      list.some((other) => unmet(one, other, known).length === 0)
        ? []
        : [`${at}[${i}]: ${JSON.stringify(one)} is not among ${JSON.stringify(actual)}`],
    );
  }
  if (typeof wanted === 'object' && wanted !== null) {
    if (Object.keys(wanted).length === 0 && actual === undefined) return [];
    if (typeof actual !== 'object' || actual === null) return [`${at}: is ${JSON.stringify(actual)}`];
    const fields = actual as Readonly<Record<string, unknown>>;
    return Object.entries(wanted).flatMap(([key, value]) => unmet(value, fields[key], known, `${at}.${key}`));
  }
  return wanted === actual ? [] : [`${at}: is ${JSON.stringify(actual)}, not ${JSON.stringify(wanted)}`];
}

function unmetText(wanted: string, actual: unknown, known: Known, at: string): readonly string[] {
  const word = wordIn(wanted);
  const expected = word === undefined ? wanted : known.get(word);
  if (expected !== undefined) {
    return actual === expected
      ? []
      : [`${at}: is ${JSON.stringify(actual)}, not ${wanted === expected ? JSON.stringify(wanted) : wanted}`];
  }
  if (typeof actual !== 'string' || actual === '') return [`${at}: is ${JSON.stringify(actual)}, not a text`];
  const [pattern, commonName, organization] = (word ?? '').split(' ');
  if (pattern !== 'certificate' && pattern !== 'request') return [];
  const subject = subjectOf(pattern, actual);
  if (subject !== `${commonName} ${organization}`) return [`${at}: is a ${pattern} of ${subject}`];
  return [...known].some(([other, text]) => other.startsWith(`${pattern} `) && text === actual)
    ? [`${at}: is a ${pattern} that there was before`]
    : [];
}

/** CN and O. */
function subjectOf(pattern: 'certificate' | 'request', base64: string): string {
  const pem = Buffer.from(base64, 'base64').toString();
  try {
    if (pattern === 'request') {
      const { commonName, organization } = readCertificateRequest(pem);
      return `${commonName} ${organization}`;
    }
    const lines = new X509Certificate(pem).subject.split('\n');
    const of = (key: string): string => lines.find((line) => line.startsWith(`${key}=`))?.slice(key.length + 1) ?? '';
    return `${of('CN')} ${of('O')}`;
  } catch {
    return `nobody: it is no ${pattern}`;
  }
}

/** What an object that says all that is wanted says for words that were not known. */
export function learned(wanted: unknown, actual: unknown, known: Known): ReadonlyMap<string, string> {
  if (typeof wanted === 'string') {
    const word = wordIn(wanted);
    return new Map(word !== undefined && word !== anyText && typeof actual === 'string' ? [[word, actual]] : []);
  }
  if (typeof wanted !== 'object' || wanted === null) return new Map();
  const pairs = Array.isArray(wanted)
    ? wanted.map((one) => [one, (actual as readonly unknown[]).find((other) => unmet(one, other, known).length === 0)])
    : Object.entries(wanted).map(([key, one]) => [
        one,
        (actual as Readonly<Record<string, unknown>> | undefined)?.[key],
      ]);
  return new Map(pairs.flatMap(([one, other]) => [...learned(one, other, known)]));
}

/** CN of a slice's certificate (docs/design/control-plane.md#which-name-does-a-certificate-carry). */
export const sliceUserOf = (slice: string, consumer: string): string =>
  `${slice}-${createHash('sha256').update(consumer).digest('hex').slice(0, 12)}`;

/**
 * What each side made of each object, by side and object: the last that was said of each part before it was deleted; and which objects are gone, on
 * whose side it is by chance. Of what was in a namespace that is gone, it is chance whether its owner or the namespace controller deleted it. Two recordings of the same programs agree in this, also where the order of two steps is by chance.
 */
export function outcome({ steps }: Exchange): Readonly<Record<string, unknown>> {
  const result: Record<string, unknown> = {};
  for (const step of steps) {
    for (const action of actionsOf(step)) {
      const { kind, metadata, ...rest } = step[action] as Manifest & Record<string, unknown>;
      const { name, namespace = '', ...marks } = metadata;
      const side = step.by === 'isthmus' ? 'isthmus' : 'liqo';
      const object = [step.at, kind, namespace, name].join(' ');
      if ('deletionTimestamp' in marks) continue;
      const isGone = action === 'delete' || action === 'absent';
      const key = `${isGone ? 'gone' : side} ${object}`;
      result[key] = isGone ? true : { ...asObject(result[key]), ...marks, ...rest };
    }
  }
  const wentWithNamespace = (key: string): boolean => {
    const [state, at, , namespace] = key.split(' ');
    return state === 'gone' && namespace !== '' && result[`gone ${at} Namespace  ${namespace}`] === true;
  };
  return Object.fromEntries(Object.entries(result).filter(([key]) => !wentWithNamespace(key)));
}

const asObject = (value: unknown): object => (typeof value === 'object' && value !== null ? value : {});
