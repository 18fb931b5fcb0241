/** The tenant's event feed, read from the outbox in the order of commits. */
import type { Caller } from '../access/caller.ts';
import type { ControlDeps, PageRequest } from '../deps.ts';

export interface FeedEvent {
  readonly id: string;
  readonly type: string;
  readonly subject: string;
  readonly at: number;
  readonly data: Readonly<Record<string, unknown>>;
}

export interface Feed {
  /** Oldest first, after the cursor. The cursor of the answer is always there: ask again with it to follow. */
  list(
    caller: Caller,
    page?: PageRequest & { readonly subject?: string },
    signal?: AbortSignal,
  ): Promise<{ readonly items: readonly FeedEvent[]; readonly cursor: string }>;
}

export function createFeed(_deps: ControlDeps): Feed {
  throw new Error('bodies follow');
}
