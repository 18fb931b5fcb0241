/** Pages of a list that lies in several partitions and is read as one, in the order of the sort keys. */
import type { PageRequest } from '../model/deps.ts';
import type { Item, Page, Store } from '../ports/store.ts';
import { decodeCursor, encodeCursor, limitOf } from './pages.ts';

interface Source<T> {
  readonly partition: string;
  /** Read and not yet looked at. */
  items: readonly Item<T>[];
  cursor: string | undefined;
  ended: boolean;
}

/** More than a partition's share of what is wanted, because shares differ: a second read of a few partitions is rare. */
const spare = 4;
/** A filter that hides most must not read most partitions for each item that it shows. */
const wantedWhenHidden = 100;
/** Beyond the page itself. */
const mostHidden = 400;

/**
 * As `pageOf`: the items that `view` does not drop. No sort key is in two of the partitions. A request looks at `limit + mostHidden` items at most; a page that
 * is short for that has a cursor.
 */
export async function mergedPageOf<T, V>(
  store: Store,
  partitions: readonly string[],
  request: PageRequest,
  view: (item: Item<T>) => V | undefined,
  signal?: AbortSignal,
): Promise<Page<V>> {
  const limit = limitOf(request);
  const list = JSON.stringify(['merged', ...partitions]);
  let last = decodeCursor(list, request.cursor);
  const sources = partitions.map((partition): Source<T> => ({ partition, items: [], cursor: last, ended: false }));
  const items: V[] = [];
  let share = shareOf(limit, partitions.length);
  for (let looked = 0; ; looked += 1) {
    const left = sources.filter((source) => source.items.length > 0 || !source.ended);
    if (left.length === 0) return { items };
    if ((items.length === limit || looked === limit + mostHidden) && last !== undefined)
      return { items, cursor: encodeCursor(list, last) };
    const empty = left.filter((source) => source.items.length === 0);
    if (empty.length > 0) await Promise.all(empty.map((source) => fill(store, source, share, signal)));
    const [first] = left.filter((source) => source.items.length > 0).sort(bySortKey);
    const item = first?.items[0];
    if (first === undefined || item === undefined) continue;
    first.items = first.items.slice(1);
    last = item.sk;
    const seen = view(item);
    if (seen !== undefined) items.push(seen);
    else share = shareOf(wantedWhenHidden, partitions.length);
  }
}

const shareOf = (wanted: number, partitions: number): number => Math.ceil(wanted / partitions) + spare;

async function fill<T>(store: Store, source: Source<T>, limit: number, signal?: AbortSignal): Promise<void> {
  const { partition, cursor } = source;
  const page = await store.query<T>({ partition, limit, ...(cursor === undefined ? {} : { cursor }) }, signal);
  source.items = page.items;
  source.cursor = page.cursor;
  source.ended = page.cursor === undefined;
}

const bySortKey = <T>(a: Source<T>, b: Source<T>): number => ((a.items[0]?.sk ?? '') < (b.items[0]?.sk ?? '') ? -1 : 1);
