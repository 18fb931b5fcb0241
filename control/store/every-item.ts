/** All items of a query, page by page: for ranges that one caller needs whole. */
import type { Item, Query, Store } from '../ports/store.ts';

interface Range extends Omit<Query, 'limit' | 'cursor'> {
  /** Items of one read. Default 100. */
  readonly atOnce?: number;
}

/** A page is read when those before it were taken. Items that are removed or come meanwhile shift none of the others. */
export async function* everyItem<T>(
  store: Pick<Store, 'query'>,
  { atOnce: limit = 100, ...query }: Range,
  signal?: AbortSignal,
): AsyncGenerator<Item<T>, void> {
  let cursor: string | undefined;
  do {
    const page = await store.query<T>({ ...query, limit, ...(cursor === undefined ? {} : { cursor }) }, signal);
    yield* page.items;
    cursor = page.cursor;
  } while (cursor !== undefined);
}
