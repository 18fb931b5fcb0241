/** The event bus port: brings what is in the outbox to subscribers, at least once, in no promised order. */
import type { OutboxEvent } from './store.ts';

export interface Subscriber {
  /** Stable across restarts: positions are kept by it. */
  readonly name: string;
  /** Absent: every type. */
  readonly types?: readonly string[];
  /** Must be idempotent by `event.id`. Throwing means deliver again later, and after many times to the dead letters. */
  handle(event: OutboxEvent, signal: AbortSignal): Promise<void>;
}

export interface EventBus {
  /** Says that the outbox may have grown. Only a hint: missing it delays delivery, never prevents it. Never throws. */
  wake(): void;
  /** Before `run`. */
  subscribe(subscriber: Subscriber): void;
  /** Delivers until the signal aborts; returns when what was being handled has ended. */
  run(signal: AbortSignal): Promise<void>;
}
