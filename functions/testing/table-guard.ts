/** Holds what a request does to the table against the rights of its function, as the policy of its role would: whichever test meets a missing right, fails. */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { Store } from '#control/ports/store.ts';
import { cloudFunctions } from '#functions/catalogue.ts';
import type { CloudFunction } from '#functions/cloud-function.ts';
import { covers, type TableRights } from '#functions/table-rights.ts';

/** Not an error of the broker: it must not become an answer. */
export class MissingRight extends Error {
  override readonly name = 'MissingRight';
}

export interface TableUse {
  readonly fn: string;
  readonly access: keyof TableRights;
  /** Partition key. */
  readonly pk: string;
}

const outbox = '§outbox';
const stream = (name: string | undefined): string => `${outbox}/${name ?? 'any'}`;
const byRoute = new Map<string, CloudFunction>(
  cloudFunctions.flatMap((fn) =>
    fn.trigger.kind === 'http' ? [[`${fn.trigger.method} ${fn.trigger.path}`, fn] as const] : [],
  ),
);

export interface TableGuard {
  /** Whatever `work` asks of the store is asked by the function of this route. */
  asFunctionOf<T>(routeKey: string, work: () => Promise<T>): Promise<T>;
  guarded(store: Store): Store;
}

/** `heard` is told of each use, allowed or not. */
export function createTableGuard(heard: (use: TableUse) => void = () => undefined): TableGuard {
  const acting = new AsyncLocalStorage<{ readonly fn: CloudFunction; missing: MissingRight | undefined }>();

  function check(access: keyof TableRights, pk: string): void {
    const now = acting.getStore();
    if (now === undefined) return;
    heard({ fn: now.fn.name, access, pk });
    if (covers(now.fn.table[access], pk)) return;
    now.missing = new MissingRight(
      `${now.fn.name} has no right to ${access} ${pk}: functions/table-rights.ts gives it ${now.fn.table[access].join(' ')}`,
    );
    throw now.missing;
  }

  return {
    async asFunctionOf(routeKey, work) {
      const fn = byRoute.get(routeKey);
      if (fn === undefined) return work();
      const now = { fn, missing: undefined as MissingRight | undefined };
      const result = await acting.run(now, work);
      if (now.missing !== undefined) throw now.missing;
      return result;
    },
    guarded: (store) => ({
      get(pk, sk, signal) {
        check('read', pk);
        return store.get(pk, sk, signal);
      },
      query(query, signal) {
        check('read', query.partition);
        return store.query(query, signal);
      },
      async transact(ops, events = [], signal) {
        for (const { pk } of ops) check('write', pk);
        if (events.length > 0) check('write', outbox);
        for (const event of events) check('write', stream(event.stream));
        return store.transact(ops, events, signal);
      },
      outbox(after, limit, name, signal) {
        check('read', stream(name));
        // A reader closes places that were taken and not used.
        check('write', stream(name));
        return store.outbox(after, limit, name, signal);
      },
      newestCursor(name, signal) {
        check('read', stream(name));
        return store.newestCursor(name, signal);
      },
      async endStream(name, signal) {
        check('write', outbox);
        check('write', stream(name));
        return store.endStream(name, signal);
      },
      sweep: (signal) => store.sweep(signal),
      close: () => store.close(),
    }),
  };
}
