/** The event as the bus carries it: made by the dispatcher and by the local bus, read by every event function. */
import type { EventBridgeEvent } from 'aws-lambda';
import * as z from 'zod';
import type { NewEvent, OutboxEvent } from '#control/ports/store.ts';
import { AppError } from '#shared/errors/app-error.ts';

const Detail = z.object({
  /** The event's own identifier; the `id` around it is the bus's and new at each delivery of a republished event. */
  id: z.string().min(1),
  tenant: z.string().min(1),
  subject: z.string().min(1),
  at: z.number(),
  data: z.record(z.string(), z.unknown()),
});
export type EventDetail = z.infer<typeof Detail>;

export const detailOf = ({ id, stream, subject, at, data }: NewEvent): EventDetail => ({
  id,
  tenant: stream,
  subject,
  at,
  data: { ...data },
});

/** Back to what subscribers take. Events are hints and are read again from the store, so a cursor is not needed. */
export function outboxEventOf(event: EventBridgeEvent<string, unknown>): OutboxEvent {
  const parsed = Detail.safeParse(event.detail);
  if (!parsed.success) {
    throw new AppError('invalid_input', `the event ${event.id} is not one of this broker: ${parsed.error.message}`);
  }
  const { id, tenant, subject, at, data } = parsed.data;
  return { id, stream: tenant, type: event['detail-type'], subject, at, data, cursor: '' };
}
