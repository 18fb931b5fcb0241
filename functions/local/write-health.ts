/** Whether the database takes changes: heard of from every write, tried when there was none, said in the log when it changes. */
import type { Store } from '#control/ports/store.ts';
import { AppError, codeOf } from '#shared/errors/app-error.ts';
import type { Clock } from '#shared/ports/clock.ts';
import type { Log } from '#shared/ports/log.ts';

export interface WriteHealth {
  readonly store: Store;
  /** Throws `storage_full`, `storage_unwritable` or `store_busy`, each with what to do. */
  ready(): Promise<void>;
}

/** A write that is younger says enough. */
const freshMs = 5_000;
/** A trial that takes longer: the process has more to do than it can. */
const busyMs = 1_000;
const place = { pk: 'system/ready', sk: 'trial' } as const;
const troubles = new Set(['storage_full', 'storage_unwritable', 'store_busy']);

export function watchWrites(store: Store, { clock, log }: { readonly clock: Clock; readonly log: Log }): WriteHealth {
  let trouble: string | undefined;
  let writtenAt = Number.NEGATIVE_INFINITY;
  let trial: Promise<void> | undefined;

  function heard(error?: unknown): void {
    const code = error === undefined ? undefined : codeOf(error);
    if (error !== undefined && (code === undefined || !troubles.has(code))) return;
    if (code === undefined) writtenAt = clock.now();
    if (code === trouble) return;
    if (code === undefined) log.info('the database takes changes again', { was: trouble });
    else log.error('the database takes no changes', error, { code });
    trouble = code;
  }

  async function transact(...args: Parameters<Store['transact']>): Promise<void> {
    try {
      await store.transact(...args);
    } catch (error) {
      heard(error);
      throw error;
    }
    heard();
  }

  async function tryOne(): Promise<void> {
    const startedAt = clock.now();
    const before = await store.get(place.pk, place.sk);
    const value = { at: startedAt };
    await transact([
      before ? { op: 'update', ...place, value, ifVersion: before.version } : { op: 'put', ...place, value },
    ]);
    const took = clock.now() - startedAt;
    if (took > busyMs) throw new AppError('store_busy', `one small change took ${took} ms, more than ${busyMs} ms`);
  }

  return {
    store: { ...store, transact },
    async ready() {
      if (trouble === undefined && clock.now() - writtenAt < freshMs) return;
      trial ??= tryOne().finally(() => {
        trial = undefined;
      });
      await trial;
    },
  };
}
