/** Webhooks, event targets and their deliveries as clients see them. */
import type { DeliveryView } from '#control/webhooks/delivery-log.ts';
import type { EventTargetView, WebhookView } from '#control/webhooks/records.ts';
import type { IssuedWebhook as Issued } from '#control/webhooks/webhooks.ts';
import type { EventTarget, EventTargetDelivery } from '#shared/schema/api/event-targets.ts';
import type { IssuedWebhook, Webhook, WebhookDelivery } from '#shared/schema/api/webhooks.ts';

const time = (ms: number): string => new Date(ms).toISOString();

export const webhookResource = (view: WebhookView): Webhook => ({
  id: view.id,
  url: view.url,
  description: view.description,
  types: [...view.types],
  state: view.disabled ? 'disabled' : 'enabled',
  ...(view.disabled && { disabledAt: time(view.disabled.at), disabledReason: view.disabled.reason }),
  ...(view.failingSince !== undefined && { failingSince: time(view.failingSince) }),
  ...(view.oldSecretExpiresAt !== undefined && { oldSecretExpiresAt: time(view.oldSecretExpiresAt) }),
  createdAt: time(view.createdAt),
  createdBy: view.createdBy,
  version: view.version,
});

export const issuedWebhookResource = ({ webhook, secret }: Issued): IssuedWebhook => ({
  webhook: webhookResource(webhook),
  secret,
});

export const deliveryResource = ({
  nextAttemptAt,
  last,
  createdAt,
  receiver,
  ...view
}: DeliveryView): WebhookDelivery => ({
  ...view,
  webhook: receiver,
  createdAt: time(createdAt),
  ...(nextAttemptAt !== undefined && { nextAttemptAt: time(nextAttemptAt) }),
  ...(last && { lastAttempt: { ...last, at: time(last.at) } }),
});

export const eventTargetResource = ({
  disabled,
  failingSince,
  createdAt,
  types,
  ...view
}: EventTargetView): EventTarget => ({
  ...view,
  types: [...types],
  state: disabled ? 'disabled' : 'enabled',
  ...(disabled && { disabledAt: time(disabled.at), disabledReason: disabled.reason }),
  ...(failingSince !== undefined && { failingSince: time(failingSince) }),
  createdAt: time(createdAt),
});

export const targetDeliveryResource = ({
  nextAttemptAt,
  last,
  createdAt,
  receiver,
  ...view
}: DeliveryView): EventTargetDelivery => ({
  ...view,
  target: receiver,
  createdAt: time(createdAt),
  ...(nextAttemptAt !== undefined && { nextAttemptAt: time(nextAttemptAt) }),
  ...(last && {
    lastAttempt: {
      at: time(last.at),
      durationMs: last.durationMs,
      ...(last.answer !== undefined && { receipt: last.answer }),
      ...(last.error !== undefined && { error: last.error }),
    },
  }),
});
