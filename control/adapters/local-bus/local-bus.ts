/** The event bus inside one process: the outbox is the queue, each subscriber keeps its position, retries and dead letters in the store. */

import { abortScope, type LinkedAbort } from '#shared/async/abort-scope.ts';
import { backoffMs } from '#shared/async/backoff.ts';
import { messageOf } from '#shared/errors/message-of.ts';
import type { Clock } from '#shared/ports/clock.ts';
import type { Log } from '#shared/ports/log.ts';
import type { EventBus, Subscriber } from '../../ports/event-bus.ts';
import { type Item, type Op, type OutboxEvent, type Store, withPrefix } from '../../ports/store.ts';
import { partition, sortableTime } from '../../store/keys.ts';

/** What a real bus may do to events, for tests. Probabilities from 0 to 1, decided by `random`. */
interface Mischief {
  readonly random: () => number;
  /** Deliver a batch in another order. */
  readonly shuffle?: number;
  /** Deliver an event twice. */
  readonly duplicate?: number;
  /** Deliver an event up to `delayMs` later. */
  readonly delay?: number;
  readonly delayMs?: number;
  /** Lose a delivery; at least once still holds, hence it comes again later. */
  readonly drop?: number;
}

export interface LocalBusOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  readonly mischief?: Mischief;
  /** Deliveries of one event before it becomes a dead letter. Default 12, which is about an hour. */
  readonly maxAttempts?: number;
}

export interface LocalBus extends EventBus {
  /** Delivers everything that is due now; true when there was something. `run` does this forever, tests call it. */
  deliverDue(signal: AbortSignal): Promise<boolean>;
  deadLetters(subscriber: string): Promise<readonly DeadLetter[]>;
}

interface DeadLetter {
  readonly event: OutboxEvent;
  readonly attempts: number;
  readonly reason: string;
}

interface Retry {
  readonly event: OutboxEvent;
  readonly attempts: number;
}

const batchSize = 50;
/** Bounds what a missed wake-up can cost, as when another process writes to the same file. */
const idleMs = 5_000;
const firstRetryMs = 1_000;
const longestRetryMs = 10 * 60_000;
const deadKeptMs = 14 * 86_400_000;
const retryPrefix = 'retry/';
const deadPrefix = 'dead/';

export function createLocalBus(options: LocalBusOptions): LocalBus {
  const { store, clock, log, mischief, maxAttempts = 12 } = options;
  const subscribers: Subscriber[] = [];
  let awake: LinkedAbort | undefined;

  const chance = (probability: number | undefined): boolean =>
    mischief !== undefined && probability !== undefined && mischief.random() < probability;

  /** Undefined: handled. Otherwise what to do about it. */
  async function deliver(
    subscriber: Subscriber,
    event: OutboxEvent,
    signal: AbortSignal,
  ): Promise<{ readonly error: unknown } | undefined> {
    try {
      if (chance(mischief?.drop)) return { error: new Error('dropped by the test') };
      await subscriber.handle(event, signal);
      if (chance(mischief?.duplicate)) await subscriber.handle(event, signal);
      return undefined;
    } catch (error) {
      signal.throwIfAborted();
      return { error };
    }
  }

  const retryOp = (subscriber: Subscriber, { event, attempts }: Retry, at: number): Op => ({
    op: 'put',
    pk: partition.bus(subscriber.name),
    sk: `${retryPrefix}${sortableTime(at)}/${event.id}`,
    value: { event, attempts } satisfies Retry,
  });

  function afterFailure(subscriber: Subscriber, { event, attempts }: Retry, error: unknown): Op {
    const tried = attempts + 1;
    const facts = { subscriber: subscriber.name, event: event.id, type: event.type, attempts: tried };
    if (tried < maxAttempts) {
      log.warn('event will be delivered again', { ...facts, reason: messageOf(error) });
      return retryOp(subscriber, { event, attempts: tried }, clock.now() + retryDelay(tried));
    }
    log.error('event became a dead letter', error, facts);
    return {
      op: 'put',
      pk: partition.bus(subscriber.name),
      sk: `${deadPrefix}${sortableTime(clock.now())}/${event.id}`,
      value: { event, attempts: tried, reason: messageOf(error) } satisfies DeadLetter,
      expiresAt: clock.now() + deadKeptMs,
    };
  }

  async function deliverNew(subscriber: Subscriber, signal: AbortSignal): Promise<boolean> {
    const pk = partition.bus(subscriber.name);
    const position = await store.get<{ readonly cursor: string }>(pk, 'position', signal);
    const found = await store.outbox(position?.value.cursor, batchSize, undefined, signal);
    const last = found.at(-1);
    if (!last) return false;
    const wanted = found.filter((event) => subscriber.types === undefined || subscriber.types.includes(event.type));
    const ops: Op[] = [];
    for (const event of order(wanted)) {
      if (chance(mischief?.delay)) {
        const at = clock.now() + Math.ceil((mischief?.random() ?? 0) * (mischief?.delayMs ?? 1_000));
        ops.push(retryOp(subscriber, { event, attempts: 0 }, at));
        continue;
      }
      const failed = await deliver(subscriber, event, signal);
      if (failed) ops.push(afterFailure(subscriber, { event, attempts: 0 }, failed.error));
    }
    // Killed before this, the whole batch comes again: at least once.
    ops.push(
      position
        ? { op: 'update', pk, sk: 'position', value: { cursor: last.cursor }, ifVersion: position.version }
        : { op: 'put', pk, sk: 'position', value: { cursor: last.cursor } },
    );
    await store.transact(ops, [], signal);
    return true;
  }

  const order = (events: readonly OutboxEvent[]): readonly OutboxEvent[] =>
    mischief && chance(mischief.shuffle)
      ? events
          .map((event) => ({ event, rank: mischief.random() }))
          .sort((a, b) => a.rank - b.rank)
          .map(({ event }) => event)
      : events;

  const retries = (
    subscriber: Subscriber,
    limit: number,
    signal?: AbortSignal,
  ): Promise<{ readonly items: readonly Item<Retry>[] }> =>
    store.query<Retry>({ partition: partition.bus(subscriber.name), ...withPrefix(retryPrefix), limit }, signal);

  const dueAt = ({ sk }: Item): number => Number(sk.slice(retryPrefix.length, sk.lastIndexOf('/')));

  async function deliverRetries(subscriber: Subscriber, signal: AbortSignal): Promise<boolean> {
    const { items } = await retries(subscriber, batchSize, signal);
    let delivered = false;
    for (const item of items) {
      if (dueAt(item) > clock.now()) break;
      delivered = true;
      const failed = await deliver(subscriber, item.value.event, signal);
      const done: Op = { op: 'delete', pk: item.pk, sk: item.sk, ifVersion: item.version };
      await store.transact(failed ? [done, afterFailure(subscriber, item.value, failed.error)] : [done], [], signal);
    }
    return delivered;
  }

  async function deliverDue(signal: AbortSignal): Promise<boolean> {
    let delivered = false;
    for (const subscriber of subscribers) {
      if (await deliverNew(subscriber, signal)) delivered = true;
      if (await deliverRetries(subscriber, signal)) delivered = true;
    }
    return delivered;
  }

  async function idleFor(signal: AbortSignal): Promise<number> {
    const now = clock.now();
    const next = await Promise.all(
      subscribers.map(async (subscriber) => (await retries(subscriber, 1, signal)).items[0]),
    );
    const waits = next.flatMap((item) => (item ? [Math.max(1, dueAt(item) - now)] : []));
    return Math.min(idleMs, ...waits);
  }

  return {
    deliverDue,
    wake() {
      awake?.abort();
    },
    subscribe(subscriber) {
      subscribers.push(subscriber);
    },
    async deadLetters(subscriber) {
      const { items } = await store.query<DeadLetter>({
        partition: partition.bus(subscriber),
        ...withPrefix(deadPrefix),
        limit: 100,
      });
      return items.map(({ value }) => value);
    },
    async run(signal) {
      let failures = 0;
      while (!signal.aborted) {
        awake = abortScope(signal);
        try {
          if (await deliverDue(signal)) continue;
          failures = 0;
          await clock.sleep(await idleFor(signal), awake.signal).catch(() => undefined);
        } catch (error) {
          if (signal.aborted) return;
          failures += 1;
          log.error('event delivery stopped and will be tried again', error);
          await clock.sleep(retryDelay(failures), signal).catch(() => undefined);
        } finally {
          awake.unlink();
        }
      }
    },
  };
}

const retryDelay = (attempts: number): number => backoffMs(attempts, { baseMs: firstRetryMs, maxMs: longestRetryMs });
