/** A store that counts what is read of it: how many items, and in how many requests. */
import type { Store } from '../ports/store.ts';

export interface Reads {
  items: number;
  requests: number;
}

export function countingReads(store: Store): {
  readonly store: Store;
  of(work: () => Promise<unknown>): Promise<Reads>;
} {
  const reads: Reads = { items: 0, requests: 0 };
  const note = (items: number): void => {
    reads.items += items;
    reads.requests += 1;
  };
  return {
    store: {
      ...store,
      async get(...args) {
        note(1);
        return store.get(...args) as never;
      },
      async getMany(...args) {
        note(args[0].keys.length);
        return store.getMany(...args) as never;
      },
      async query(...args) {
        const page = await store.query(...args);
        note(page.items.length);
        return page as never;
      },
    },
    async of(work) {
      const before = { ...reads };
      await work();
      return { items: reads.items - before.items, requests: reads.requests - before.requests };
    },
  };
}
