/** One attempt at one delivery: claimed, sent, its outcome written down. */
import { testType } from '../events/cloud-event.ts';
import type { ControlDeps } from '../model/deps.ts';
import type { Item, Op } from '../ports/store.ts';
import type { SendOutcome } from '../ports/webhook-sender.ts';
import { key } from '../store/keys.ts';
import { claimed, delivered, failed, givenUp, moveOps, transacted, undueOps } from './deliveries.ts';
import { subjectOf } from './receivers.ts';
import type { Attempt, DeliveryRecord, FailingRecord, ReceiverRecord } from './records.ts';
import { failingLimitMs, retryAfter } from './schedule.ts';
import type { Sending } from './sending.ts';

export interface AttemptDeps extends Pick<ControlDeps, 'store' | 'clock' | 'ids' | 'log'> {
  readonly send: Sending;
  /** Switches the receiver off, with its event. */
  readonly disable: (tenant: string, receiver: string, reason: string, signal?: AbortSignal) => Promise<void>;
}

/** Longer than a receiver may fail before it is disabled. */
const failingKeptMs = 4 * failingLimitMs;
/** Receivers say so to be left alone for good. */
const gone = 410;

export type Attempting = (
  tenant: string,
  receiver: Item<ReceiverRecord>,
  due: { readonly at: number; readonly event: string },
  signal?: AbortSignal,
) => Promise<void>;

export function createAttempting(deps: AttemptDeps): Attempting {
  const { store, clock, ids, log, send, disable } = deps;

  /** What an outcome means for whether the receiver is failing, and since when it was. */
  async function failingOps(tenant: string, id: string, ok: boolean, signal?: AbortSignal) {
    const at = key.webhookFailing(tenant, id);
    const before = await store.get<FailingRecord>(at.pk, at.sk, signal);
    const ops: Op[] = ok
      ? before
        ? [{ op: 'delete', ...at, ifVersion: before.version }]
        : []
      : before
        ? []
        : [
            {
              op: 'put',
              ...at,
              value: { since: clock.now() } satisfies FailingRecord,
              // Of a receiver that is deleted in this very moment, nothing must remain.
              expiresAt: clock.now() + failingKeptMs,
            },
          ];
    return { ops, since: before?.value.since };
  }

  async function settle(tenant: string, item: Item<DeliveryRecord>, outcome: SendOutcome, last: Attempt) {
    const { receiver, event, failures } = item.value;
    const now = clock.now();
    const ok = 'status' in outcome && outcome.status >= 200 && outcome.status < 300;
    const asked = 'status' in outcome ? outcome.retryAfterMs : undefined;
    const never = 'error' in outcome && outcome.final === true;
    const pause = ok || never || event.type === testType ? undefined : retryAfter(failures + 1, ids, asked);
    const next = ok ? delivered(item.value, last) : failed(item.value, last, pause && now + pause);
    // A test, and an event that no receiver could accept, say nothing about the health of the receiver.
    const health =
      event.type === testType || never ? { ops: [], since: undefined } : await failingOps(tenant, receiver, ok);
    const move = moveOps({ tenant, now }, item, next);
    // Another delivery may have said the same about the receiver in between; this one's outcome counts all the same.
    const written = (await transacted(store, [...move, ...health.ops])) || (await transacted(store, move));
    if (!written)
      log.info('a delivery was taken over by another process', {
        tenant,
        subject: subjectOf(receiver),
        event: event.id,
      });
    if (ok || never || event.type === testType) return;
    if ('status' in outcome && outcome.status === gone) {
      await disable(tenant, receiver, 'the receiver answered 410 Gone');
    } else if (health.since !== undefined && now - health.since >= failingLimitMs) {
      await disable(tenant, receiver, `every delivery failed since ${new Date(health.since).toISOString()}`);
    }
  }

  return async (tenant, receiver, due, signal) => {
    const at = key.delivery(tenant, receiver.value.id, due.event);
    const item = await store.get<DeliveryRecord>(at.pk, at.sk, signal);
    if (item?.value.dueAt !== due.at) {
      await transacted(store, undueOps(tenant, receiver.value.id, due.at, due.event), signal);
      return;
    }
    const now = clock.now();
    if (receiver.value.disabled && item.value.event.type !== testType) {
      await transacted(store, moveOps({ tenant, now }, item, givenUp(item.value, now, 'it was disabled')), signal);
      return;
    }
    const value = claimed(item.value, now);
    if (!(await transacted(store, moveOps({ tenant, now }, item, value), signal))) return;
    const outcome = await send(tenant, receiver.value, value, signal);
    const durationMs = clock.now() - now;
    const last: Attempt =
      'status' in outcome
        ? { at: now, durationMs, status: outcome.status, ...(outcome.text !== '' && { answer: outcome.text }) }
        : { at: now, durationMs, error: outcome.error };
    // Sent is sent: what came of it is written even when the process is told to stop now.
    await settle(tenant, { ...item, value, version: item.version + 1 }, outcome, last);
  };
}
