/** Rule webhooks: something happened that a webhook may ask for, or deliveries became due; they are planned, and attempted once. When a retry is due, the sweep says so with an event of its own. */
import { attemptReserveMs } from '#functions/runtime/deadline.ts';
import { reaction } from '#functions/runtime/event-handler.ts';

export const handler = reaction('webhooks', { reserveMs: attemptReserveMs });
