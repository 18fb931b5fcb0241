/** Webhooks and deliveries as clients see them. */
import type { DeliveryView } from '#control/webhooks/delivery-log.ts';
import type { WebhookView } from '#control/webhooks/records.ts';
import type { IssuedWebhook as Issued } from '#control/webhooks/webhooks.ts';
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

export const deliveryResource = ({ nextAttemptAt, last, createdAt, ...view }: DeliveryView): WebhookDelivery => ({
  ...view,
  createdAt: time(createdAt),
  ...(nextAttemptAt !== undefined && { nextAttemptAt: time(nextAttemptAt) }),
  ...(last && { lastAttempt: { ...last, at: time(last.at) } }),
});
