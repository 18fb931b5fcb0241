/** Frames between the broker and a portal that listens. They say that there is news and nothing of what it is. */
import * as z from 'zod';

export const ListenerFrame = z.object({ type: z.literal('ping') });

export type FeedFrame =
  | { readonly type: 'events' }
  /** `cursor`: after everything that was committed by now, as `GET /v1/events` takes it. */
  | { readonly type: 'pong'; readonly cursor: string };
