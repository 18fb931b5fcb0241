/** Paging: limits checked once, and pages that hide some items filled up from the next ones. */
import { AppError } from '#shared/errors/app-error.ts';
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

/** Cursors are base64url, opaque on purpose: clients must not depend on their content. */
export const encodeCursor = (sk: string): string => Buffer.from(sk).toString('base64url');

export function decodeCursor(cursor: string | undefined): string | undefined {
  if (cursor === undefined) return undefined;
  const sk = Buffer.from(cursor, 'base64url').toString('latin1');
  if (!/^[\x20-\x7e]{1,1024}$/.test(sk) || encodeCursor(sk) !== cursor) {
    throw new AppError('cursor_unknown', `cursor ${JSON.stringify(cursor)} is not one that this list handed out`, {
      detail: { field: 'cursor', value: cursor },
    });
  }
  return sk;
}

/** One page of `query`, of the items that `view` does not drop (by returning undefined). */
export async function pageOf<T, V>(
  store: Store,
  query: Omit<Query, 'limit' | 'cursor'>,
  request: PageRequest,
  view: (item: Item<T>) => V | undefined | Promise<V | undefined>,
  signal?: AbortSignal,
): Promise<Page<V>> {
  const limit = limitOf(request);
  const items: V[] = [];
  let cursor = decodeCursor(request.cursor);
  for (;;) {
    const page = await store.query<T>({ ...query, limit, ...(cursor === undefined ? {} : { cursor }) }, signal);
    for (const item of page.items) {
      if (items.length === limit && cursor !== undefined) return { items, cursor: encodeCursor(cursor) };
      const seen = await view(item);
      cursor = item.sk;
      if (seen !== undefined) items.push(seen);
    }
    if (page.cursor === undefined) return { items };
    cursor = page.cursor;
    if (items.length === limit) return { items, cursor: encodeCursor(cursor) };
  }
}
