/** For functions that put events into buses and queues of tenants. */
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { createAwsTargets } from '#control/adapters/aws-targets/aws-targets.ts';
import type { EventTargetSender } from '#control/ports/event-target-sender.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { clientSettings } from './client-settings.ts';
import type { PartDeps } from './cloud.ts';

export function tenantTargets({ env }: PartDeps): EventTargetSender {
  // Any client knows the Region and the credentials of this process; this one is in the bundle already.
  const { config } = new DynamoDBClient(clientSettings);
  const { principal, send } = createAwsTargets({
    clock: systemClock,
    principal: env.EVENT_PRINCIPAL,
    region: () => config.region(),
    credentials: () => config.credentials(),
    ...(env.EVENT_TARGETS_ENDPOINT !== undefined && { endpoint: env.EVENT_TARGETS_ENDPOINT }),
  });
  // Ends an attempt that was begun, as with webhooks.
  return { principal, send: (message) => send(message) };
}
