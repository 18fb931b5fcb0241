/** A store whose process dies at a chosen write: before it is committed, or after it and before anybody hears. */
import type { Store } from '../ports/store.ts';

interface Trouble {
  /** The how-manieth next transaction fails; 0 for none. */
  in: number;
  when: 'before' | 'after';
}

export class Crash extends Error {
  override readonly name = 'Crash';
}

export interface Troubled {
  readonly trouble: Trouble;
  readonly writes: { count: number };
  wrap(store: Store): Store;
}

export function createTroubled(): Troubled {
  const trouble: Trouble = { in: 0, when: 'before' };
  const writes = { count: 0 };
  return {
    trouble,
    writes,
    wrap: (store) => ({
      ...store,
      async transact(ops, events, signal) {
        const dies = trouble.in === 1;
        if (trouble.in > 0) trouble.in -= 1;
        if (dies && trouble.when === 'before') throw new Crash('died before the commit');
        await store.transact(ops, events, signal);
        writes.count += 1;
        if (dies) throw new Crash('died after the commit');
      },
    }),
  };
}
