/** Objects as trees in which parts hang on conditions of a chart's template, and the merging of variants of the same objects. Pure. */

/** An expression of Go's templates; undefined: always. */
export type Condition = string | undefined;

export type Tree =
  | { readonly kind: 'scalar'; readonly value: unknown }
  | { readonly kind: 'choice'; readonly options: readonly { readonly when: string; readonly tree: Tree }[] }
  | { readonly kind: 'map'; readonly entries: ReadonlyMap<string, Part> }
  | { readonly kind: 'list'; readonly items: ReadonlyMap<string, Part> };

interface Part {
  readonly when: Condition;
  readonly tree: Tree;
}

const both = (a: Condition, b: Condition): Condition =>
  a === undefined || a === b ? b : b === undefined ? a : `(and ${a} ${b})`;

/** By what the same item is known in another variant. */
function identityOf(value: unknown): string {
  const { kind, name, metadata } = (typeof value === 'object' && value !== null ? value : {}) as {
    readonly kind?: string;
    readonly name?: string;
    readonly metadata?: { readonly namespace?: string; readonly name?: string };
  };
  if (kind !== undefined && metadata !== undefined) return `${kind} ${metadata.namespace ?? ''}/${metadata.name}`;
  return kind === undefined && name !== undefined ? name : JSON.stringify(value);
}

function identified(values: readonly unknown[]): [string, unknown][] {
  const seen = new Map<string, number>();
  return values.map((value) => {
    const identity = identityOf(value);
    const count = seen.get(identity) ?? 0;
    seen.set(identity, count + 1);
    return [`${identity} ${count}`, value];
  });
}

const entriesOf = (value: object): [string, unknown][] =>
  Array.isArray(value) ? identified(value) : Object.entries(value).filter(([, one]) => one !== undefined);

const treesOfObjects = new WeakMap<object, Tree>();

/** The same tree for the same object. */
export function treeOf(value: unknown): Tree {
  if (typeof value !== 'object' || value === null) return { kind: 'scalar', value };
  const known = treesOfObjects.get(value);
  if (known !== undefined) return known;
  const parts = new Map(
    entriesOf(value).map(([key, one]): [string, Part] => [key, { when: undefined, tree: treeOf(one) }]),
  );
  const tree: Tree = Array.isArray(value) ? { kind: 'list', items: parts } : { kind: 'map', entries: parts };
  treesOfObjects.set(value, tree);
  return tree;
}

const partsOf = (tree: Tree): ReadonlyMap<string, Part> | undefined =>
  tree.kind === 'map' ? tree.entries : tree.kind === 'list' ? tree.items : undefined;

const withParts = (tree: Tree, parts: ReadonlyMap<string, Part>): Tree =>
  tree.kind === 'list' ? { kind: 'list', items: parts } : { kind: 'map', entries: parts };

/** Of parts and options, in their order. */
const sameInOrder = <T>(a: Iterable<T>, b: Iterable<T>, same: (a: T, b: T) => boolean): boolean => {
  const others = b[Symbol.iterator]();
  for (const one of a) {
    const other = others.next();
    if (other.done || !same(one, other.value)) return false;
  }
  return others.next().done === true;
};

const samePart = ([key, a]: readonly [string, Part], [other, b]: readonly [string, Part]): boolean =>
  key === other && a.when === b.when && sameTree(a.tree, b.tree);

/** Hundreds of variants are compared at each of their levels: this ends at the first difference, and makes no text of any. */
function sameTree(a: Tree, b: Tree): boolean {
  if (a === b) return true;
  if (a.kind === 'scalar') return b.kind === 'scalar' && a.value === b.value;
  if (a.kind === 'choice')
    return (
      b.kind === 'choice' &&
      sameInOrder(a.options, b.options, (one, other) => one.when === other.when && sameTree(one.tree, other.tree))
    );
  if (a.kind === 'map') return b.kind === 'map' && sameInOrder(a.entries, b.entries, samePart);
  return b.kind === 'list' && sameInOrder(a.items, b.items, samePart);
}

interface Variant {
  readonly when: string;
  readonly tree: Tree;
}

/** Exactly one of the variants holds at a time. */
export function merge(variants: readonly Variant[]): Tree {
  const [first] = variants as readonly [Variant, ...Variant[]];
  if (variants.every(({ tree }) => sameTree(tree, first.tree))) return first.tree;
  if (partsOf(first.tree) === undefined || variants.some(({ tree }) => tree.kind !== first.tree.kind))
    return { kind: 'choice', options: variants };
  const parts = new Map<string, Part>();
  for (const key of inOrder(variants.map(({ tree }) => [...(partsOf(tree)?.keys() ?? [])]))) {
    const found = variants.flatMap(({ when, tree }) => {
      const part = partsOf(tree)?.get(key);
      return part === undefined ? [] : [{ within: when, ...part }];
    });
    const tree = merge(found.map((one) => ({ when: one.within, tree: one.tree })));
    parts.set(key, { tree, when: conditionOf(found, variants.length) });
  }
  return withParts(first.tree, parts);
}

/** Those that stand under the same condition are said together. */
function conditionOf(found: readonly { readonly within: string; readonly when: Condition }[], all: number): Condition {
  const groups = new Map<Condition, string[]>();
  for (const { within, when } of found) groups.set(when, [...(groups.get(when) ?? []), within]);
  const said = [...groups].map(([when, within]) => both(within.length === all ? undefined : anyOf(within), when));
  return said.includes(undefined) ? undefined : anyOf(said as string[]);
}

const anyOf = (conditions: readonly string[]): string =>
  conditions.length === 1 ? (conditions[0] as string) : `(or ${conditions.join(' ')})`;

/** All keys, each list's in its own order. Fails when two lists have two keys the other way round. */
function inOrder(lists: readonly (readonly string[])[]): string[] {
  const result: string[] = [];
  for (const list of lists) {
    let at = 0;
    for (const key of list) {
      const found = result.indexOf(key);
      if (found >= 0 && found < at) throw new Error(`variants have ${key} at different places`);
      if (found < 0) result.splice(at, 0, key);
      at = (found < 0 ? at : found) + 1;
    }
  }
  return result;
}

/** What is missing in `without` gets the condition `when`, what is different there a choice. Fails for what is there only. */
export function optional(tree: Tree, without: unknown, when: string): Tree {
  const parts = partsOf(tree);
  if (parts === undefined || typeof without !== 'object' || without === null) {
    const other = treeOf(without);
    if (sameTree(other, tree)) return tree;
    const options = [
      { when, tree },
      { when: `(not ${when})`, tree: other },
    ];
    return { kind: 'choice', options };
  }
  if (treesOfObjects.get(without) === tree) return tree;
  const left = new Map(entriesOf(without));
  for (const key of left.keys()) if (!parts.has(key)) throw new Error(`${key} is there only without ${when}`);
  return withParts(
    tree,
    new Map(
      [...parts].map(([key, part]): [string, Part] =>
        left.has(key)
          ? [key, { when: part.when, tree: optional(part.tree, left.get(key), when) }]
          : [key, { when: both(when, part.when), tree: part.tree }],
      ),
    ),
  );
}
