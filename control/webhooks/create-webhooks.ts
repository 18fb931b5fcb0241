/** Webhooks and event targets, put together: two kinds of receivers, one machine that delivers. */
import type { ControlDeps } from '../model/deps.ts';
import { createAttempting } from './attempt.ts';
import { createDeliverer, type Deliverer } from './deliverer.ts';
import { createDeliveryLog, type DeliveryLog } from './delivery-log.ts';
import { createEventTargetRegistry, type EventTargetRegistry } from './event-targets.ts';
import { disableReceiver, eventTargetKind, webhookKind } from './receivers.ts';
import { createSending } from './sending.ts';
import { createWebhookRegistry, type WebhookRegistry } from './webhooks.ts';

export interface Webhooks extends WebhookRegistry {
  readonly deliveries: DeliveryLog;
  /** Of webhooks and of event targets. Absent: this broker can send to neither. */
  readonly deliverer?: Deliverer;
}

export interface EventTargets extends EventTargetRegistry {
  readonly deliveries: DeliveryLog;
}

export function createWebhooks(deps: ControlDeps): Webhooks {
  const { secretBox, webhookSender, eventTargetSender } = deps;
  const deliverer =
    (secretBox && webhookSender) || eventTargetSender
      ? createDeliverer(
          deps,
          createAttempting({
            ...deps,
            send: createSending(deps),
            disable: (tenant, id, reason, signal) => disableReceiver(deps, tenant, id, reason, signal),
          }),
        )
      : undefined;
  return {
    ...createWebhookRegistry(deps),
    deliveries: createDeliveryLog(deps, webhookKind),
    ...(deliverer ? { deliverer } : {}),
  };
}

export const createEventTargets = (deps: ControlDeps): EventTargets => ({
  ...createEventTargetRegistry(deps),
  deliveries: createDeliveryLog(deps, eventTargetKind),
});
