/** One attempt at one delivery: claimed, signed, posted, its outcome written down. */
import type { ControlDeps } from '../deps.ts';
import { cloudEventOf, testType } from '../events/cloud-event.ts';
import { key } from '../keys.ts';
import type { SecretBox } from '../ports/secret-box.ts';
import type { Item, Op } from '../ports/store.ts';
import type { PostOutcome, WebhookSender } from '../ports/webhook-sender.ts';
import { claimed, delivered, failed, givenUp, moveOps, transacted } from './deliveries.ts';
import {
  type Attempt,
  type DeliveryRecord,
  type FailingRecord,
  liveSecrets,
  secretContext,
  type WebhookRecord,
} from './records.ts';
import { failingLimitMs, retryAfter } from './schedule.ts';
import { signatureHeaders } from './signature.ts';

export interface AttemptDeps extends Pick<ControlDeps, 'store' | 'bus' | 'clock' | 'ids' | 'log' | 'broker'> {
  readonly secretBox: SecretBox;
  readonly webhookSender: WebhookSender;
  /** Switches the webhook off, with its event. */
  readonly disable: (tenant: string, webhook: string, reason: string, signal?: AbortSignal) => Promise<void>;
}

/** Longer than a webhook may fail before it is disabled. */
const failingKeptMs = 4 * failingLimitMs;
/** Receivers say so to be left alone for good. */
const gone = 410;

export type Attempting = (
  tenant: string,
  webhook: Item<WebhookRecord>,
  due: { readonly at: number; readonly event: string },
  signal?: AbortSignal,
) => Promise<void>;

export function createAttempting(deps: AttemptDeps): Attempting {
  const { store, clock, ids, log, broker, secretBox, webhookSender, disable } = deps;

  async function headersFor(tenant: string, webhook: WebhookRecord, body: string, id: string, signal?: AbortSignal) {
    const at = clock.now();
    const secrets = await Promise.all(
      liveSecrets(webhook, at).map((secret) =>
        secretBox.open(secret.sealedSecret, secretContext(tenant, webhook.id, secret.id), signal),
      ),
    );
    return {
      'content-type': 'application/cloudevents+json; charset=utf-8',
      'user-agent': 'isthmus-webhooks',
      ...signatureHeaders(secrets, { id, at, body }),
    };
  }

  async function send(tenant: string, webhook: WebhookRecord, { event }: DeliveryRecord, signal?: AbortSignal) {
    const body = JSON.stringify(cloudEventOf({ ...event, stream: tenant }, broker()));
    let headers: Record<string, string>;
    try {
      headers = await headersFor(tenant, webhook, body, event.id, signal);
    } catch (error) {
      signal?.throwIfAborted();
      log.error('the secret of a webhook cannot be opened', error, { tenant, webhook: webhook.id });
      return { error: 'the secret of this webhook cannot be opened; rotate it' };
    }
    return webhookSender.post({ url: webhook.url, headers, body }, signal);
  }

  /** What an outcome means for whether the webhook is failing, and since when it was. */
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
              // Of a webhook that is deleted in this very moment, nothing must remain.
              expiresAt: clock.now() + failingKeptMs,
            },
          ];
    return { ops, since: before?.value.since };
  }

  async function settle(tenant: string, item: Item<DeliveryRecord>, outcome: PostOutcome, last: Attempt) {
    const { webhook, event, failures } = item.value;
    const now = clock.now();
    const ok = 'status' in outcome && outcome.status >= 200 && outcome.status < 300;
    const asked = 'status' in outcome ? outcome.retryAfterMs : undefined;
    const pause = ok || event.type === testType ? undefined : retryAfter(failures + 1, ids, asked);
    const next = ok ? delivered(item.value, last) : failed(item.value, last, pause && now + pause);
    // A test says nothing about how the webhook fares.
    const health = event.type === testType ? { ops: [], since: undefined } : await failingOps(tenant, webhook, ok);
    const move = moveOps({ tenant, now }, item, next);
    // Another delivery may have said the same about the webhook in between; this one's outcome counts all the same.
    const written = (await transacted(store, [...move, ...health.ops])) || (await transacted(store, move));
    if (!written) log.info('a delivery was taken over by another process', { tenant, webhook, event: event.id });
    // Somebody waits for what came of a test.
    if (event.type === testType) deps.bus?.wake();
    if (ok || event.type === testType) return;
    if ('status' in outcome && outcome.status === gone) {
      await disable(tenant, webhook, 'the receiver answered 410 Gone');
    } else if (health.since !== undefined && now - health.since >= failingLimitMs) {
      await disable(tenant, webhook, `every delivery failed since ${new Date(health.since).toISOString()}`);
    }
  }

  return async (tenant, webhook, due, signal) => {
    const at = key.delivery(tenant, webhook.value.id, due.event);
    const item = await store.get<DeliveryRecord>(at.pk, at.sk, signal);
    if (item?.value.dueAt !== due.at) {
      const stale = key.deliveryDue(tenant, webhook.value.id, due.at, due.event);
      await transacted(store, [{ op: 'delete', ...stale, ifVersion: 1 }], signal);
      return;
    }
    const now = clock.now();
    if (webhook.value.disabled && item.value.event.type !== testType) {
      await transacted(
        store,
        moveOps({ tenant, now }, item, givenUp(item.value, now, 'the webhook was disabled')),
        signal,
      );
      return;
    }
    const value = claimed(item.value, now);
    if (!(await transacted(store, moveOps({ tenant, now }, item, value), signal))) return;
    const outcome = await send(tenant, webhook.value, value, signal);
    const durationMs = clock.now() - now;
    const last: Attempt =
      'status' in outcome
        ? { at: now, durationMs, status: outcome.status, ...(outcome.text !== '' && { answer: outcome.text }) }
        : { at: now, durationMs, error: outcome.error };
    // Posted is posted: what came of it is written even when the process is told to stop now.
    await settle(tenant, { ...item, value, version: item.version + 1 }, outcome, last);
  };
}
