/** The event bus as an event function sees it: the bus outside has delivered one event, and a subscriber of the control plane handles it. */
import { AppError } from '#shared/errors/app-error.ts';
import type { EventBus, Subscriber } from '../../ports/event-bus.ts';
import type { OutboxEvent } from '../../ports/store.ts';

export interface DeliveredBus extends EventBus {
  /** Hands the event to the subscriber of that name, unless the type is none of its own. Rejects as the subscriber does. */
  deliver(subscriber: string, event: OutboxEvent, signal: AbortSignal): Promise<void>;
}

export function createDeliveredBus(): DeliveredBus {
  const subscribers = new Map<string, Subscriber>();
  return {
    /** The table's stream sees every commit. */
    wake() {},
    subscribe(subscriber) {
      subscribers.set(subscriber.name, subscriber);
    },
    /** Repetition and dead letters are the bus's own. */
    async run() {},
    async deliver(name, event, signal) {
      const subscriber = subscribers.get(name);
      if (subscriber === undefined) throw new AppError('internal', `there is no subscriber ${name}`);
      if (subscriber.types !== undefined && !subscriber.types.includes(event.type)) return;
      await subscriber.handle(event, signal);
    },
  };
}
