/** The two ways of an event to its receiver: a signed POST to a webhook, a message into a bus or a queue of the tenant. */
import { externalIdOf } from '#shared/domain/event-target-arn.ts';
import { cloudEventOf, typeName } from '../events/cloud-event.ts';
import type { ControlDeps } from '../model/deps.ts';
import type { SendOutcome } from '../ports/webhook-sender.ts';
import { eventTargetKind, kindOf } from './receivers.ts';
import {
  type DeliveryRecord,
  type EventTargetRecord,
  liveSecrets,
  type ReceiverRecord,
  secretContext,
  type WebhookRecord,
} from './records.ts';
import { signatureHeaders } from './signature.ts';

/** One attempt. Rejects only when `signal` aborts. */
export type Sending = (
  tenant: string,
  receiver: ReceiverRecord,
  delivery: DeliveryRecord,
  signal?: AbortSignal,
) => Promise<SendOutcome>;

type Deps = Pick<ControlDeps, 'clock' | 'log' | 'broker' | 'secretBox' | 'webhookSender' | 'eventTargetSender'>;

export function createSending(deps: Deps): Sending {
  const toWebhook = createWebhookSending(deps);
  const toTarget = createTargetSending(deps);
  return (tenant, receiver, delivery, signal) =>
    kindOf(receiver.id) === eventTargetKind
      ? toTarget(tenant, receiver as EventTargetRecord, delivery, signal)
      : toWebhook(tenant, receiver as WebhookRecord, delivery, signal);
}

function createWebhookSending({ clock, log, broker, secretBox, webhookSender }: Deps) {
  return async (
    tenant: string,
    webhook: WebhookRecord,
    { event }: DeliveryRecord,
    signal?: AbortSignal,
  ): Promise<SendOutcome> => {
    if (!secretBox || !webhookSender) return { error: 'this broker has no key for the secrets of webhooks any more' };
    const at = clock.now();
    const body = JSON.stringify(cloudEventOf({ ...event, stream: tenant }, broker()));
    let secrets: string[];
    try {
      secrets = await Promise.all(
        liveSecrets(webhook, at).map((secret) =>
          secretBox.open(secret.sealedSecret, secretContext(tenant, webhook.id, secret.id), signal),
        ),
      );
    } catch (error) {
      signal?.throwIfAborted();
      log.error('the secret of a webhook cannot be opened', error, { tenant, webhook: webhook.id });
      return { error: 'the secret of this webhook cannot be opened; rotate it' };
    }
    const headers = {
      'content-type': 'application/cloudevents+json; charset=utf-8',
      'user-agent': 'isthmus-webhooks',
      ...signatureHeaders(secrets, { id: event.id, at, body }),
    };
    return webhookSender.post({ url: webhook.url, headers, body }, signal);
  };
}

function createTargetSending({ broker, eventTargetSender }: Deps) {
  return async (
    tenant: string,
    { arn, roleArn }: EventTargetRecord,
    { event }: DeliveryRecord,
    signal?: AbortSignal,
  ): Promise<SendOutcome> => {
    if (!eventTargetSender) return { error: 'this broker has no identity at AWS any more' };
    const { id, type, subject, at } = event;
    return eventTargetSender.send(
      {
        tenant,
        arn,
        roleArn,
        externalId: externalIdOf(tenant),
        event: { id, type: typeName(type), subject, at },
        body: JSON.stringify(cloudEventOf({ ...event, stream: tenant }, broker())),
      },
      signal,
    );
  };
}
