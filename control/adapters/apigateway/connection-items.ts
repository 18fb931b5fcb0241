/** What the entries of connections in the store have in common. */
import { codeOf } from '#shared/errors/app-error.ts';
import type { Key, Store } from '../../ports/store.ts';

/** API Gateway ends every connection after two hours, and `$disconnect` is best effort. */
export const connectionLifeMs = 2 * 3_600_000 + 60_000;

export const connectionPartition = (connectionId: string): string => `system/connections/${connectionId}`;
/** Of a connection on which a portal listens. */
export const listenerKey = (connectionId: string): Key => ({ pk: connectionPartition(connectionId), sk: 'listener' });

export interface Entry {
  readonly at: Key;
  readonly value: unknown;
  readonly expiresAt: number;
}

/** One item at a time: no harm is in either of two alone, and a transaction of both costs twice as much. */
export async function putEntry(store: Store, { at, value, expiresAt }: Entry, signal?: AbortSignal): Promise<void> {
  try {
    await store.transact([{ op: 'put', ...at, value, expiresAt }], [], signal);
  } catch (error) {
    // Delivered twice: the connection is known already.
    if (codeOf(error) !== 'version_conflict') throw error;
  }
}

export async function dropEntry(store: Store, at: Key, signal?: AbortSignal): Promise<void> {
  try {
    await store.transact([{ op: 'delete', ...at, ifVersion: 1 }], [], signal);
  } catch (error) {
    if (codeOf(error) !== 'version_conflict') throw error;
  }
}
