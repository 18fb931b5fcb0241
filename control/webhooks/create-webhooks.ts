/** Webhooks, put together. */
import type { ControlDeps } from '../deps.ts';
import { createAttempting } from './attempt.ts';
import { createDeliverer, type Deliverer } from './deliverer.ts';
import { createDeliveryLog, type DeliveryLog } from './delivery-log.ts';
import { createWebhookRegistry, disableWebhook, type WebhookRegistry } from './webhooks.ts';

export interface Webhooks extends WebhookRegistry {
  readonly deliveries: DeliveryLog;
  /** Absent: this broker has no key for secrets, hence no webhooks. */
  readonly deliverer?: Deliverer;
}

export function createWebhooks(deps: ControlDeps): Webhooks {
  const { secretBox, webhookSender } = deps;
  const deliverer =
    secretBox && webhookSender
      ? createDeliverer(
          deps,
          createAttempting({
            ...deps,
            secretBox,
            webhookSender,
            disable: (tenant, id, reason, signal) => disableWebhook(deps, tenant, id, reason, signal),
          }),
        )
      : undefined;
  return {
    ...createWebhookRegistry(deps),
    deliveries: createDeliveryLog(deps),
    ...(deliverer ? { deliverer } : {}),
  };
}
