/** Stands for contents that are only ever compared: caches then hold neither the size of what is reflected nor its secrets. */
import { createHash } from 'node:crypto';
import type { KubeObject } from '#shared/domain/kube-object.ts';

interface Digest {
  readonly sha256: string;
}

const digestOf = (text: string): string => createHash('sha256').update(text).digest('hex');

const digested = (value: unknown): unknown =>
  typeof value === 'string' ? ({ sha256: digestOf(value) } satisfies Digest) : value;

/** Values of the named maps become digests; what is a digest stays one. */
export function withDigests<T extends KubeObject>(object: T, maps: readonly string[]): T {
  const fields = object as T & Record<string, unknown>;
  const replaced = maps.flatMap((map) => {
    const values = fields[map];
    if (typeof values !== 'object' || values === null) return [];
    return [[map, Object.fromEntries(Object.entries(values).map(([key, value]) => [key, digested(value)]))]];
  });
  return { ...object, ...Object.fromEntries(replaced) };
}

/** Equal for equal JSON, with members in any order. */
export const fingerprint = (value: unknown): string => digestOf(JSON.stringify(sorted(value))).slice(0, 32);

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).filter(([, member]) => member !== undefined);
  return Object.fromEntries(
    entries.toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([key, member]) => [key, sorted(member)]),
  );
}
