/**
 * Which portals listen, kept in the store. All of a tenant are one item, so that one request reads them for all tenants of which something was committed,
 * and the limit holds when two connect at once.
 */
import type { Clock } from '#shared/ports/clock.ts';
import { type Listener, maxListeners, tooManyListeners } from '../../events/listeners.ts';
import type { Key, Store } from '../../ports/store.ts';
import { untilWritten } from '../../store/until-written.ts';
import { connectionLifeMs, dropEntry, listenerKey, putEntry } from './connection-items.ts';

export interface OpenListener extends Listener {
  readonly connectionId: string;
  /** When it was opened. */
  readonly at: number;
}

export interface ListenerTable {
  /** Throws `limit_reached`. */
  add(connectionId: string, listener: Listener, signal?: AbortSignal): Promise<void>;
  /** Of all these tenants, in one request. At most 200 tenants. */
  of(tenants: readonly string[], signal?: AbortSignal): Promise<readonly OpenListener[]>;
  remove(tenant: string, connectionIds: readonly string[], signal?: AbortSignal): Promise<void>;
}

type Open = Omit<OpenListener, 'tenant'>;
interface OpenOfTenant {
  readonly open: readonly Open[];
}

const ofTenant = (tenant: string): Key => ({ pk: `t/${tenant}/listeners`, sk: 'open' });

export function createListenerTable({ store, clock }: { readonly store: Store; readonly clock: Clock }): ListenerTable {
  const live = (value: OpenOfTenant | undefined): readonly Open[] =>
    (value?.open ?? []).filter(({ at }) => clock.now() - at < connectionLifeMs);

  /** The item is never deleted, also when nothing is open: it would begin at version 1 again, and a writer that read the old one would overwrite the new. */
  async function rewrite(
    tenant: string,
    change: (open: readonly Open[]) => readonly Open[],
    signal?: AbortSignal,
  ): Promise<void> {
    await untilWritten(async () => {
      const at = ofTenant(tenant);
      const item = await store.get<OpenOfTenant>(at.pk, at.sk, signal);
      const before = live(item?.value);
      const open = change(before);
      if (open === before) return;
      const write = { ...at, value: { open } satisfies OpenOfTenant, expiresAt: clock.now() + connectionLifeMs };
      await store.transact(
        [item === undefined ? { op: 'put', ...write } : { op: 'update', ...write, ifVersion: item.version }],
        [],
        signal,
      );
    }, signal);
  }

  return {
    async add(connectionId, { tenant, keyId }, signal) {
      const at = clock.now();
      await rewrite(
        tenant,
        (open) => {
          // Delivered twice.
          if (open.some((one) => one.connectionId === connectionId)) return open;
          if (open.length >= maxListeners) throw tooManyListeners(tenant);
          return [...open, { connectionId, keyId, at }];
        },
        signal,
      );
      const value: Listener = { tenant, keyId };
      await putEntry(store, { at: listenerKey(connectionId), value, expiresAt: at + connectionLifeMs }, signal);
    },

    async of(tenants, signal) {
      const items = await store.getMany<OpenOfTenant>({ keys: tenants.map(ofTenant) }, signal);
      return tenants.flatMap((tenant, i) => live(items[i]?.value).map((one) => ({ tenant, ...one })));
    },

    async remove(tenant, connectionIds, signal) {
      await rewrite(
        tenant,
        (open) => {
          const left = open.filter(({ connectionId }) => !connectionIds.includes(connectionId));
          return left.length === open.length ? open : left;
        },
        signal,
      );
      for (const connectionId of connectionIds) await dropEntry(store, listenerKey(connectionId), signal);
    },
  };
}
