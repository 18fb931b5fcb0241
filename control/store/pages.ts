/** Paging: limits checked once, and pages that hide some items filled up from the next ones. */
import { AppError } from '#shared/errors/app-error.ts';
import { sha256Hex } from '../access/secrets.ts';
import type { PageRequest } from '../model/deps.ts';
import type { Item, Page, Query, Store } from '../ports/store.ts';

const defaultLimit = 50;
const maxLimit = 200;

export function limitOf({ limit = defaultLimit }: PageRequest): number {
  if (!Number.isInteger(limit) || limit < 1 || limit > maxLimit) {
    throw new AppError('invalid_input', `limit is ${limit}; accepted is a whole number from 1 to ${maxLimit}`, {
      detail: { field: 'limit', value: limit, accepted: `1..${maxLimit}` },
    });
  }
  return limit;
}

/** Of a list, so that a cursor of another list, or of another tenant's, is told apart from one of this. */
const tagOf = (list: string): string => sha256Hex(list).slice(0, 8);

/** Cursors are base64url, opaque on purpose: clients must not depend on their content. `list` is the same for every page of one list. */
export const encodeCursor = (list: string, place: string): string =>
  tagOf(list) + Buffer.from(place).toString('base64url');

/** The place that was encoded. `cursor_unknown` for a cursor of another list and for what is none. */
export function decodeCursor(list: string, cursor: string | undefined): string | undefined {
  if (cursor === undefined) return undefined;
  const place = Buffer.from(cursor.slice(tagOf(list).length), 'base64url').toString('latin1');
  if (!/^[\x20-\x7e]{1,1024}$/.test(place) || encodeCursor(list, place) !== cursor) {
    throw new AppError('cursor_unknown', `cursor ${JSON.stringify(cursor)} is not one that this list handed out`, {
      detail: { field: 'cursor', value: cursor },
    });
  }
  return place;
}

export const listOf = ({ partition, from = '', to = '', reverse = false }: Omit<Query, 'limit' | 'cursor'>): string =>
  JSON.stringify([partition, from, to, reverse]);

/** Items of one read, regardless of the page: a filter that hides most items must not cost one read for each that it shows. */
const readAtOnce = 100;
/** Reads of one request. A page that they do not fill is short and has a cursor. */
const maxReads = 5;

type Within = Omit<Query, 'limit' | 'cursor'>;

/**
 * One page of `query`, of the items that `view` does not drop (by returning undefined). A page may be short, even empty, and yet have a cursor:
 * one request looks at `limit + readAtOnce * (maxReads - 1)` items at most.
 */
export const pageOf = <T, V>(
  store: Store,
  query: Within,
  request: PageRequest,
  view: (item: Item<T>) => V | undefined | Promise<V | undefined>,
  signal?: AbortSignal,
): Promise<Page<V>> =>
  pageOfMany(store, query, request, (items: readonly Item<T>[]) => Promise.all(items.map(view)), signal);

/** The same for views that need other items, which `views` reads for all at once; one for each item, in their order. */
export async function pageOfMany<T, V>(
  store: Store,
  query: Within,
  request: PageRequest,
  views: (items: readonly Item<T>[]) => Promise<readonly (V | undefined)[]>,
  signal?: AbortSignal,
): Promise<Page<V>> {
  const limit = limitOf(request);
  const items: V[] = [];
  const list = listOf(query);
  let cursor = decodeCursor(list, request.cursor);
  let atOnce = limit;
  for (let reads = 0; reads < maxReads; reads += 1) {
    const page = await store.query<T>({ ...query, limit: atOnce, ...(cursor === undefined ? {} : { cursor }) }, signal);
    const seen = await views(page.items);
    for (const [i, { sk }] of page.items.entries()) {
      if (items.length === limit && cursor !== undefined) return { items, cursor: encodeCursor(list, cursor) };
      cursor = sk;
      const view = seen[i];
      if (view !== undefined) items.push(view);
    }
    if (page.cursor === undefined) return { items };
    cursor = page.cursor;
    if (items.length === limit) break;
    // Something was hidden: from here on it may be most of them.
    atOnce = readAtOnce;
  }
  return { items, ...(cursor === undefined ? {} : { cursor: encodeCursor(list, cursor) }) };
}
