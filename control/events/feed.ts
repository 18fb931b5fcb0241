/** The tenant's event feed, read from the outbox in the order of commits. */
import { type Caller, mustHave } from '../access/caller.ts';
import type { ControlDeps, PageRequest } from '../model/deps.ts';
import { decodeCursor, encodeCursor, limitOf } from '../store/pages.ts';
import { type CloudEvent, cloudEventOf } from './cloud-event.ts';
import { isPublic } from './types.ts';

interface FeedEvent {
  readonly id: string;
  readonly type: string;
  readonly subject: string;
  readonly at: number;
  readonly data: Readonly<Record<string, unknown>>;
}

export interface Feed {
  /**
   * Oldest first, after the cursor; without one from the oldest event kept (24 hours). The cursor of the answer is always there: ask again
   * with it to follow. A page may be short or empty although more follows, because internal events are left out.
   */
  list(
    caller: Caller,
    page?: PageRequest & { readonly subject?: string },
    signal?: AbortSignal,
  ): Promise<{ readonly items: readonly FeedEvent[]; readonly cursor: string }>;
  /** As everybody outside sees it. */
  present(caller: Caller, event: FeedEvent): CloudEvent;
}

/** Bounds the work of one call when most events are internal. */
const maxReads = 10;

export const createFeed = ({ store, broker }: Pick<ControlDeps, 'store' | 'broker'>): Feed => ({
  present: ({ tenant }, event) => cloudEventOf({ ...event, stream: tenant }, broker()),

  async list(caller, page = {}, signal) {
    mustHave(caller, 'events:read');
    const limit = limitOf(page);
    const items: FeedEvent[] = [];
    let after = decodeCursor(page.cursor);
    for (let reads = 0; reads < maxReads && items.length < limit; reads += 1) {
      // Before the events, hence a follower that starts there misses none.
      const end = after ?? (await store.newestCursor(caller.tenant, signal));
      const found = await store.outbox(after, limit, caller.tenant, signal);
      for (const { id, type, subject, at, data, cursor } of found) {
        if (items.length === limit) break;
        after = cursor;
        if (isPublic(type) && (page.subject === undefined || page.subject === subject)) {
          items.push({ id, type, subject, at, data });
        }
      }
      after ??= end;
      if (found.length < limit) break;
    }
    return { items, cursor: encodeCursor(after ?? (await store.newestCursor(caller.tenant, signal))) };
  },
});
