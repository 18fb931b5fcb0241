/** Readers for parts of manifests and objects whose shape is not checked yet. */
import type { KubeManifest } from '#shared/schema/protocol/agent-protocol.ts';
import type { Json } from './kind.ts';

export const asObject = (value: unknown): Json => (typeof value === 'object' && value !== null ? (value as Json) : {});
export const specOf = (manifest: KubeManifest): Json => asObject((manifest as Json).spec);

/** JSON for what is no text. `String` would call `toString` of the value, and a manifest may have a member of that name. */
export const textOf = (value: unknown): string =>
  typeof value === 'string' ? value : (JSON.stringify(value) ?? 'absent');

/** Those of `fields` that `from` has. */
export function pick<F extends string>(from: Json | undefined, ...fields: F[]): { readonly [K in F]?: unknown } {
  return Object.fromEntries(fields.flatMap((field) => (from?.[field] === undefined ? [] : [[field, from[field]]]))) as {
    readonly [K in F]?: unknown;
  };
}

/** What is wrong with the fields of `value`, which is at `where`; undefined: all are among `accepted`. */
export const strayField = (value: Json, accepted: readonly string[], where: string): string | undefined => {
  const field = Object.keys(value).find((key) => !accepted.includes(key));
  return field === undefined ? undefined : `${where}.${field} is not accepted from a broker`;
};

/** Cluster IDs inside the spec must be those of the two parties; `expected` has them by field. */
export function wrongParty(manifest: KubeManifest, expected: Readonly<Record<string, string>>): string | undefined {
  const spec = specOf(manifest);
  const wrong = Object.keys(expected).find((field) => spec[field] !== undefined && spec[field] !== expected[field]);
  return wrong === undefined ? undefined : `spec.${wrong} is ${textOf(spec[wrong])}, accepted is ${expected[wrong]}`;
}
