/** Damages to the specs of the example objects: every place that a spec has, and what is put there. */
import fc from 'fast-check';
import type { KubeResource } from '#shared/domain/kube-object.ts';
import { objectSchema } from '#shared/schema/crd.ts';
import type { KindDefinition } from '#shared/schema/definition/kind.ts';
import type { StructuralSchema } from '#shared/schema/definition/structural.ts';
import { goldenObjects } from '#test/golden/objects.ts';

type Tree = Record<string, unknown>;
type Path = readonly (string | number)[];
export interface Place {
  readonly kind: KindDefinition;
  readonly object: KubeResource<Tree | undefined, Tree>;
  readonly path: Path;
}
export type Damage = { readonly do: 'remove' } | { readonly do: 'put'; readonly value: unknown };

/** Every place in the spec of every example. */
export const placesOfExamples = (): readonly Place[] =>
  goldenObjects().flatMap(({ kind, object }) => pathsIn(object.spec ?? {}).map((path) => ({ kind, object, path })));

function pathsIn(value: unknown): Path[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, member]) => {
    const step = Array.isArray(value) ? Number(key) : key;
    return [[step], ...pathsIn(member).map((path) => [step, ...path])];
  });
}

/** The first of all places that one node of a schema describes: items of a list are alike, as are values of a map and all that is inside a core type. */
export function oneOfEachSchema(places: readonly Place[]): readonly Place[] {
  const schemas = new Map(places.map(({ kind }) => [kind, objectSchema(kind).properties?.spec]));
  const first = new Map<string, Place>();
  for (const place of places) {
    const node = `${place.kind.kind} ${nodeOf(place.path, schemas.get(place.kind)).join('.')}`;
    if (!first.has(node)) first.set(node, place);
  }
  return [...first.values()];
}

function nodeOf([step, ...rest]: Path, schema: StructuralSchema | undefined): readonly string[] {
  if (step === undefined) return [];
  if (schema?.items) return ['[]', ...nodeOf(rest, schema.items)];
  if (schema?.additionalProperties) return ['*', ...nodeOf(rest, schema.additionalProperties)];
  return schema?.properties ? [String(step), ...nodeOf(rest, schema.properties[step])] : ['?'];
}

const put = (value: unknown): Damage => ({ do: 'put', value });
/** One of each type that JSON has. */
export const typicalDamages: readonly Damage[] = [
  { do: 'remove' },
  ...[true, -1, 0.5, 'x', ['x'], { x: 'y' }].map(put),
];
export const constantDamages: readonly Damage[] = [
  ...typicalDamages,
  ...[0, 7, '', 'A B', '2', '4Gi', [], {}].map(put),
];

export const randomDamage: fc.Arbitrary<Damage> = fc
  .oneof(fc.string({ unit: 'grapheme-ascii', maxLength: 70 }), fc.integer())
  .map(put);

/** A copy of the spec with the damage at that place. */
export function damaged({ object, path }: Place, damage: Damage): unknown {
  const copy = structuredClone(object.spec);
  const last = path.at(-1) ?? '';
  const parent = path.slice(0, -1).reduce((at, step) => (at as Tree)[step] as Tree, copy as Tree);
  if (damage.do === 'put') parent[last] = structuredClone(damage.value);
  else if (Array.isArray(parent)) parent.splice(Number(last), 1);
  else delete parent[last];
  return copy;
}
