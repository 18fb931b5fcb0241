/**
 * Brings events to where tenants want them: plans a delivery for each webhook and event target that wants an event, and attempts what is due. Each has a queue of its
 * own, so that a receiver that does not answer delays no other receiver.
 */
import { abortScope, type LinkedAbort } from '#shared/async/abort-scope.ts';
import { inParallel } from '#shared/async/in-parallel.ts';
import { codeOf } from '#shared/errors/app-error.ts';
import { eventOf } from '../audit/record.ts';
import { publicTypes } from '../events/cloud-event.ts';
import type { ControlDeps } from '../model/deps.ts';
import type { DueDelivery } from '../model/due-delivery.ts';
import type { Subscriber } from '../ports/event-bus.ts';
import { type Item, type OutboxEvent, withPrefix } from '../ports/store.ts';
import { sweepDue } from '../store/due.ts';
import { key, partition } from '../store/keys.ts';
import type { Attempting } from './attempt.ts';
import { planOps, transacted, undueOps } from './deliveries.ts';
import { maxReceivers, subjectOf } from './receivers.ts';
import type { ReceiverRecord } from './records.ts';
import { longestRetryAfterMs } from './schedule.ts';
import { wants } from './subscription.ts';

export interface Deliverer {
  readonly subscriber: Subscriber;
  /** Attempts everything that is due, of all tenants. For schedules. */
  sweep(signal?: AbortSignal): Promise<void>;
  /** Says by events which receivers have something due, without posting itself: each is then drained on its own. */
  announce(signal?: AbortSignal): Promise<void>;
  /** For a process that stays: attempts what becomes due until the signal aborts. */
  run(signal: AbortSignal): Promise<void>;
}

/** At one receiver at the same time. */
const atOnce = 4;
const batch = 20;
/** Bounds the delay of what another process left. */
const scanMs = 30_000;
const troubleMs = 5_000;

interface Queue {
  readonly tenant: string;
  readonly receiver: string;
}
const nameOf = ({ tenant, receiver }: Queue): string => `${tenant}/${receiver}`;

export function createDeliverer(
  deps: Pick<ControlDeps, 'store' | 'clock' | 'ids' | 'log'>,
  attempting: Attempting,
): Deliverer {
  const { store, clock, log } = deps;
  const receiversOf = async (tenant: string, signal?: AbortSignal) =>
    (await store.query<ReceiverRecord>({ partition: partition.webhooks(tenant), limit: maxReceivers * 4 }, signal))
      .items;

  /** The queues that got something. An event that comes again finds its deliveries there. */
  async function plan(event: OutboxEvent, signal: AbortSignal): Promise<Queue[]> {
    const { id, stream: tenant, type, subject, at, data } = event;
    const queues: Queue[] = [];
    for (const { sk: receiver, value } of await receiversOf(tenant, signal)) {
      if (value.disabled || at < value.createdAt || !wants(value.types, type)) continue;
      const now = clock.now();
      const planned = { receiver, event: { id, type, subject, at, data }, createdAt: now };
      await transacted(store, planOps({ tenant, now }, planned), signal);
      queues.push({ tenant, receiver });
    }
    return queues;
  }

  const upcoming = (tenant: string, receiver: string, limit: number, signal?: AbortSignal) =>
    store.query<DueDelivery>(
      { partition: partition.deliveriesDue(tenant), ...withPrefix(`${receiver}/`), limit },
      signal,
    );

  /** Attempts what is due at one receiver; when the next one is, if any. */
  async function drain({ tenant, receiver }: Queue, signal?: AbortSignal): Promise<number | undefined> {
    const at = key.webhook(tenant, receiver);
    for (;;) {
      signal?.throwIfAborted();
      const record = await store.get<ReceiverRecord>(at.pk, at.sk, signal);
      const { items } = await upcoming(tenant, receiver, batch, signal);
      if (!record) {
        // It was deleted, and what waited for it with it.
        if (items.length === 0) return undefined;
        await transacted(
          store,
          items.flatMap((item) => undueOps(tenant, receiver, dueAt(item), item.value.event)),
          signal,
        );
        continue;
      }
      const found = items.map((item) => ({ at: dueAt(item), event: item.value.event }));
      const due = found.filter((one) => one.at <= clock.now());
      if (due.length === 0) return found[0]?.at;
      await inParallel(due, atOnce, (one) => attempting(tenant, record, one, signal));
    }
  }

  const dueAt = ({ sk }: Item): number => Number(sk.split('/')[1]);

  /** Calls back once for each queue in which something comes due until then. */
  async function eachDue(
    until: number,
    { found, signal }: { readonly found: (queue: Queue) => Promise<void>; readonly signal?: AbortSignal | undefined },
  ): Promise<void> {
    const known = new Set<string>();
    const swept = await sweepDue<DueDelivery>(
      deps,
      {
        index: 'deliveries',
        until,
        async handle({ tenant, item }) {
          const queue: Queue = { tenant, receiver: item.value.receiver };
          if (known.has(nameOf(queue))) return;
          known.add(nameOf(queue));
          await found(queue);
        },
      },
      signal,
    );
    if (swept.unfinished) log.warn('looking for due deliveries ran out of time and goes on where it stopped');
  }

  let running: AbortSignal | undefined;
  let woken: LinkedAbort | undefined;
  const draining = new Map<string, Promise<void>>();
  /** Got something while being drained. */
  const again = new Set<string>();
  const next = new Map<string, { readonly queue: Queue; readonly at: number }>();

  function start(queue: Queue, signal: AbortSignal): void {
    const name = nameOf(queue);
    next.delete(name);
    if (draining.has(name)) {
      again.add(name);
      return;
    }
    const work = drain(queue, signal)
      .catch((error: unknown) => {
        if (signal.aborted) return undefined;
        log.error('delivering to a receiver failed and will be tried again', error, { ...queue, code: codeOf(error) });
        return clock.now() + troubleMs;
      })
      .then((at) => {
        draining.delete(name);
        if (signal.aborted) return;
        if (again.delete(name)) start(queue, signal);
        else if (at !== undefined) {
          next.set(name, { queue, at });
          woken?.abort();
        }
      });
    draining.set(name, work);
  }

  async function loop(signal: AbortSignal): Promise<void> {
    let scanAt = clock.now();
    /** At first everything that earlier processes left; from then on this one knows what it planned, and looks for what others did. */
    let horizonMs = longestRetryAfterMs * 2;
    while (!signal.aborted) {
      const nap = abortScope(signal);
      woken = nap;
      try {
        if (clock.now() >= scanAt) {
          // By the time that it looked at, not the time that it took: what came due meanwhile is found by the next scan at once.
          const since = clock.now();
          await eachDue(since + horizonMs, { found: async (queue) => start(queue, signal), signal });
          horizonMs = scanMs;
          scanAt = since + scanMs;
        }
        for (const { queue, at } of [...next.values()]) if (at <= clock.now()) start(queue, signal);
      } catch (error) {
        if (signal.aborted) return nap.unlink();
        log.error('looking for due deliveries failed and will be tried again', error);
        scanAt = clock.now() + troubleMs;
      }
      const wakeAt = Math.min(scanAt, ...[...next.values()].map(({ at }) => at));
      const left = wakeAt - clock.now();
      if (left > 0) await clock.sleep(left, nap.signal).catch(() => undefined);
      nap.unlink();
    }
  }

  return {
    subscriber: {
      name: 'webhooks',
      types: [...publicTypes, 'webhook.due'],
      async handle(event, signal) {
        const queues =
          event.type === 'webhook.due'
            ? [{ tenant: event.stream, receiver: event.subject.slice(event.subject.indexOf('/') + 1) }]
            : await plan(event, signal);
        // A process that stays does not keep the bus waiting for receivers.
        if (running) for (const queue of queues) start(queue, running);
        else {
          await inParallel(queues, queues.length, async (queue) => {
            await drain(queue, signal).catch((error: unknown) => {
              // Whose time is over leaves the rest to the sweep: all of it is written down.
              if (!signal.aborted) throw error;
            });
          });
        }
      },
    },

    async sweep(signal) {
      await eachDue(clock.now(), { found: async (queue) => void (await drain(queue, signal)), signal });
    },

    async announce(signal) {
      await eachDue(clock.now(), {
        found: ({ tenant, receiver }) =>
          store.transact([], [eventOf(deps, tenant, 'webhook.due', subjectOf(receiver))], signal),
        signal,
      });
    },

    async run(signal) {
      running = signal;
      await loop(signal);
      await Promise.allSettled(draining.values());
      running = undefined;
    },
  };
}
