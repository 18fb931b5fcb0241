/** Which ranges are taken, as a binary tree over the whole address space. Pure; every question costs at most 32 steps, a search the size of the tree. */
import { type CidrRange, containsRange, sizeOf } from '#shared/domain/cidr.ts';

interface TreeNode {
  /** Holders of exactly this range, and whether each tolerates others. */
  readonly holders: Map<string, boolean>;
  readonly children: [TreeNode | undefined, TreeNode | undefined];
  /** Holders here and below. */
  total: number;
}

const node = (): TreeNode => ({ holders: new Map(), children: [undefined, undefined], total: 0 });

export class PrefixTree {
  readonly #root = node();

  /** Does not check for conflicts: see `isFree`, `isSharable`. One holder holds a range once. */
  add(range: CidrRange, holder: string, shared: boolean): void {
    const path = [this.#root];
    for (let depth = 0; depth < range.length; depth++) {
      const at = path.at(-1) as TreeNode;
      const side = bit(range.base, depth);
      at.children[side] ??= node();
      path.push(at.children[side]);
    }
    const end = path.at(-1) as TreeNode;
    if (end.holders.has(holder)) return;
    end.holders.set(holder, shared);
    for (const one of path) one.total++;
  }

  remove(range: CidrRange, holder: string): void {
    const path = this.#path(range);
    const end = path.at(-1);
    if (path.length !== range.length + 1 || !end?.holders.delete(holder)) return;
    path.forEach((one, depth) => {
      one.total--;
      const parent = path[depth - 1];
      if (one.total === 0 && parent) parent.children[bit(range.base, depth - 1)] = undefined;
    });
  }

  /** True when no holder has any part of it. */
  isFree(range: CidrRange): boolean {
    return this.holders(range).next().done === true;
  }

  /** True when all holders of any part of it allow sharing. */
  isSharable(range: CidrRange): boolean {
    for (const [, shared] of this.holders(range)) if (!shared) return false;
    return true;
  }

  /** Holders of any part of it, each with whether it allows sharing. */
  *holders(range: CidrRange): Generator<readonly [string, boolean]> {
    const path = this.#path(range);
    for (const one of path) yield* one.holders;
    if (path.length !== range.length + 1) return;
    const below = [...(path.at(-1)?.children ?? [])];
    for (let one = below.pop(); one !== undefined || below.length > 0; one = below.pop()) {
      if (one === undefined) continue;
      yield* one.holders;
      below.push(...one.children);
    }
  }

  /** Depth first, left first, parts already split before whole ones, so that large ranges stay whole. Undefined: none of this length is free. */
  findFree(pool: CidrRange, length: number): CidrRange | undefined {
    if (length < pool.length) return undefined;
    const path = this.#path(pool);
    const above = path.length === pool.length + 1 ? path.slice(0, -1) : path;
    if (above.some(({ holders }) => holders.size > 0)) return undefined;
    return search(path[pool.length], pool, length);
  }

  /** From the root down, as far as there are nodes. */
  #path({ base, length }: CidrRange): TreeNode[] {
    const path = [this.#root];
    for (let depth = 0; depth < length; depth++) {
      const next = path.at(-1)?.children[bit(base, depth)];
      if (next === undefined) break;
      path.push(next);
    }
    return path;
  }
}

function search(at: TreeNode | undefined, range: CidrRange, length: number): CidrRange | undefined {
  if (at === undefined || at.total === 0) return { base: range.base, length };
  if (at.holders.size > 0 || range.length === length) return undefined;
  const half = range.length + 1;
  const sides = ([0, 1] as const).map((side) => ({
    child: at.children[side],
    range: { base: range.base + side * sizeOf(half), length: half },
  }));
  sides.sort((a, b) => Number(b.child !== undefined) - Number(a.child !== undefined));
  for (const { child, range: part } of sides) {
    const found = search(child, part, length);
    if (found) return found;
  }
  return undefined;
}

const bit = (base: number, depth: number): 0 | 1 => ((base >>> (31 - depth)) & 1) as 0 | 1;

export const isInPools = (range: CidrRange, pools: readonly CidrRange[]): boolean =>
  pools.some((pool) => containsRange(pool, range));
