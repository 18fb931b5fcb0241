/** The tenant's event feed, read from the outbox in the order of commits. */
import { AppError } from '#shared/errors/app-error.ts';
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
   * with it to follow. A page may be short or empty although more follows, because internal events are left out. `cursor_expired` when events
   * after the cursor may be gone already, saying of which time.
   */
  list(
    caller: Caller,
    page?: PageRequest & { readonly subject?: string },
    signal?: AbortSignal,
  ): Promise<{ readonly items: readonly FeedEvent[]; readonly cursor: string }>;
  /** The cursor after everything that was committed by now. */
  newest(caller: Caller, signal?: AbortSignal): Promise<string>;
  /** As everybody outside sees it. */
  present(caller: Caller, event: FeedEvent): CloudEvent;
}

/** Bounds the work of one call when most events are internal. */
const maxReads = 10;

/** The store keeps events at least as long. */
const keptMs = 24 * 3_600_000;

/** A position in the log, and a time up to which it has everything: what came later is still there for `keptMs`. */
interface Place {
  readonly position: string;
  readonly at: number;
}

const listOf = (tenant: string): string => `events of ${tenant}`;

const placeText = ({ position, at }: Place): string => `${at.toString(36)}.${position}`;

function placeOf(text: string): Place {
  const dot = text.indexOf('.');
  return { at: Number.parseInt(text.slice(0, dot), 36), position: text.slice(dot + 1) };
}

export const createFeed = ({ store, broker, clock }: Pick<ControlDeps, 'store' | 'broker' | 'clock'>): Feed => {
  /** A follower that stayed away for longer than events are kept hears so, instead of missing some in silence. */
  async function mustReach({ at, position }: Place, tenant: string, signal?: AbortSignal): Promise<void> {
    const oldest = clock.now() - keptMs;
    if (at >= oldest || (await store.newestCursor(tenant, signal)) === position) return;
    const [from, to] = [new Date(at).toISOString(), new Date(oldest).toISOString()];
    throw new AppError(
      'cursor_expired',
      `the log keeps events for 24 hours: those from ${from} to ${to} may be missed; read the lists that you follow once more, then follow without a cursor`,
      { detail: { missed: { from, to } } },
    );
  }

  return {
    present: ({ tenant }, event) => cloudEventOf({ ...event, stream: tenant }, broker()),

    async newest(caller, signal) {
      mustHave(caller, 'events:read');
      const { tenant } = caller;
      const at = clock.now();
      return encodeCursor(listOf(tenant), placeText({ position: await store.newestCursor(tenant, signal), at }));
    },

    async list(caller, page = {}, signal) {
      mustHave(caller, 'events:read');
      const { tenant } = caller;
      const limit = limitOf(page);
      const items: FeedEvent[] = [];
      const list = listOf(tenant);
      const text = decodeCursor(list, page.cursor);
      const known = text === undefined ? undefined : placeOf(text);
      if (known) await mustReach(known, tenant, signal);
      const now = clock.now();
      let after = known?.position;
      let at = known?.at ?? now;
      for (let reads = 0; reads < maxReads && items.length < limit; reads += 1) {
        // Before the events, hence a follower that starts there misses none.
        const end = after ?? (await store.newestCursor(tenant, signal));
        const found = await store.outbox(after, limit, tenant, signal);
        for (const event of found) {
          if (items.length === limit) break;
          after = event.cursor;
          at = Math.min(event.at, now);
          if (isPublic(event.type) && (page.subject === undefined || page.subject === event.subject)) {
            const { id, type, subject, data } = event;
            items.push({ id, type, subject, at: event.at, data });
          }
        }
        after ??= end;
        if (found.length >= limit) continue;
        at = now;
        break;
      }
      const position = after ?? (await store.newestCursor(tenant, signal));
      return { items, cursor: encodeCursor(list, placeText({ position, at })) };
    },
  };
};
