/** The store of a broker, which refuses keys outside the tenant that is being served. */
import type { Store } from '#control/ports/store.ts';
import { partitionOfTenant } from '#control/testing/due-items.ts';

export class IsolationBroken extends Error {
  override readonly name = 'IsolationBroken';
}

export interface Serving {
  readonly tenant: string;
  /** Of an operation that reaches other tenants by design: nothing is refused. */
  readonly across: boolean;
}

export function guarded(
  store: Store,
  serving: () => Serving | undefined,
  breach: (what: string) => IsolationBroken,
): Store {
  const mine = (pk: string): void => {
    const now = serving();
    if (now === undefined || now.across || pk === `t/${now.tenant}` || pk.startsWith(`t/${now.tenant}/`)) return;
    throw breach(`${now.tenant} reached ${pk}`);
  };
  return {
    ...store,
    get(pk, sk, signal) {
      if (!harmless(pk)) mine(partitionOfTenant(pk, sk));
      return store.get(pk, sk, signal);
    },
    getMany(many, signal) {
      for (const { pk, sk } of many.keys) mine(partitionOfTenant(pk, sk));
      return store.getMany(many, signal);
    },
    query(query, signal) {
      mine(query.partition);
      return store.query(query, signal);
    },
    async transact(ops, events, signal) {
      for (const op of ops) if (op.op === 'check' || !harmless(op.pk)) mine(partitionOfTenant(op.pk, op.sk));
      for (const event of events ?? []) mine(`t/${event.stream}`);
      return store.transact(ops, events, signal);
    },
    outbox(after, limit, stream, signal) {
      mine(`t/${stream}`);
      return store.outbox(after, limit, stream, signal);
    },
  };
}

/** A tenant's own entries in the shared lists: whether one of its names is published, whether the tenant is listed. */
const harmless = (pk: string): boolean => pk.startsWith('system/directory/') || pk === 'system/tenants';
