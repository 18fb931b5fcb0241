/** A store whose process dies at a chosen write: before it is committed, or after it and before anybody hears. */
import type { Store } from '../ports/store.ts';

interface Fault {
  /** The how-manieth next transaction fails; 0 for none. */
  in: number;
  when: 'before' | 'after';
}

export class Crash extends Error {
  override readonly name = 'Crash';
}

export interface FaultyStore {
  readonly fault: Fault;
  readonly writes: { count: number };
  wrap(store: Store): Store;
}

export function createFaultyStore(): FaultyStore {
  const fault: Fault = { in: 0, when: 'before' };
  const writes = { count: 0 };
  return {
    fault,
    writes,
    wrap: (store) => ({
      ...store,
      async transact(ops, events, signal) {
        const dies = fault.in === 1;
        if (fault.in > 0) fault.in -= 1;
        if (dies && fault.when === 'before') throw new Crash('died before the commit');
        await store.transact(ops, events, signal);
        writes.count += 1;
        if (dies) throw new Crash('died after the commit');
      },
    }),
  };
}
