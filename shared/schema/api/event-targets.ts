/** Event targets - a tenant's own event buses and queues at AWS - and their deliveries in the REST API (docs/events.md). */
import * as z from 'zod';
import { roleArnPattern, targetArnPattern } from '../../domain/event-target-arn.ts';
import { Description, page, Time, Types, WebhookDelivery } from './webhooks.ts';

const Arn = z
  .string()
  .max(400)
  .regex(targetArnPattern, 'must be arn:aws:events:REGION:ACCOUNT:event-bus/NAME or arn:aws:sqs:REGION:ACCOUNT:NAME')
  .describe('Of an EventBridge bus or an SQS queue, also a FIFO queue.');
const RoleArn = z
  .string()
  .max(200)
  .regex(roleArnPattern, 'must be arn:aws:iam::ACCOUNT:role/isthmus-events-NAME')
  .describe(
    'A role in the account of the target: it trusts `principal` with `externalId` and may write to the target.',
  );

export const EventTarget = z.object({
  id: z.string(),
  type: z.enum(['eventbridge', 'sqs']),
  arn: z.string(),
  roleArn: z.string(),
  principal: z.string().describe('The principal that assumes the role: what its trust policy has to name.'),
  externalId: z
    .string()
    .describe('What the trust policy has to ask for (`sts:ExternalId`). The same for all targets of the tenant.'),
  description: z.string(),
  types: z.array(z.string()),
  state: z.enum(['enabled', 'disabled']),
  disabledAt: Time.optional(),
  disabledReason: z.string().optional(),
  failingSince: Time.optional().describe('Every attempt since then failed.'),
  createdAt: Time,
  createdBy: z.string(),
  version: z.int(),
});
export type EventTarget = z.infer<typeof EventTarget>;

export const NewEventTarget = z.object({
  arn: Arn,
  roleArn: RoleArn,
  types: Types.default(['*']),
  description: Description.default(''),
});

export const EventTargetChange = z.object({
  roleArn: RoleArn.optional(),
  types: Types.optional(),
  description: Description.optional(),
  enabled: z.boolean().optional(),
});

export const EventTargetDelivery = WebhookDelivery.omit({ webhook: true, lastAttempt: true }).extend({
  id: z.string().describe('The id of the event.'),
  target: z.string(),
  lastAttempt: z
    .object({
      at: Time,
      durationMs: z.int(),
      receipt: z.string().optional().describe('The id that EventBridge or SQS gave to what it took.'),
      error: z.string().optional().describe('Why it was not taken, with the code of AWS where there is one.'),
    })
    .optional(),
});
export type EventTargetDelivery = z.infer<typeof EventTargetDelivery>;

export const EventTargetPage = page(EventTarget);
export const EventTargetDeliveryPage = page(EventTargetDelivery);
