/**
 * The stack around every function that a rule of the bus starts. The event is a hint: the subscriber reads the aggregate, decides on what it
 * finds, and writes on condition of its version, so that repeated, late and reordered events change nothing.
 */
import middy from '@middy/core';
import type { Context, EventBridgeEvent } from 'aws-lambda';
import { outboxEventOf } from './bus-event.ts';
import { cloudCompositionOf } from './cloud-composition.ts';
import { compositionOf } from './composition.ts';
import { deadlineSignal } from './deadline.ts';

type Event = EventBridgeEvent<string, unknown>;

export type Reaction = (event: Event, context: Context) => Promise<void>;

/** `subscriber`: of the control plane, by name. What it throws makes the platform deliver again, and in the end to the dead letters. */
export function reaction(subscriber: string, { reserveMs }: { readonly reserveMs?: number } = {}): Reaction {
  return middy<Event, void>()
    .onError(({ event, context, error }) => {
      const facts = { subscriber, type: event['detail-type'], id: event.id };
      compositionOf(context).log.error('reacting to an event failed', error, facts);
    })
    .handler(async (event: Event, context: Context) => {
      await cloudCompositionOf(context).delivered.deliver(
        subscriber,
        outboxEventOf(event),
        deadlineSignal(context, reserveMs),
      );
    }) as unknown as Reaction;
}
