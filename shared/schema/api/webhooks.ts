/** Webhooks and their deliveries in the REST API (docs/events.md). */
import * as z from 'zod';
import { printable, webUrl } from '../definition/printable-text.ts';

export const Time = z.iso.datetime().describe('RFC 3339, UTC.');
const Url = webUrl(2_000).describe('https only, at a public address. Every reader of webhooks sees it in full.');
export const Types = z
  .array(z.string().min(1).max(100))
  .min(1)
  .max(50)
  .describe('`*`, types of the catalogue, or groups such as `dev.isthmus.peering.*`; `peering.*` is short for it.');
export const Description = printable(z.string().max(500));

export const Webhook = z.object({
  id: z.string(),
  url: z.string(),
  description: z.string(),
  types: z.array(z.string()),
  state: z.enum(['enabled', 'disabled']),
  disabledAt: Time.optional(),
  disabledReason: z.string().optional(),
  failingSince: Time.optional().describe('Every attempt since then failed.'),
  oldSecretExpiresAt: Time.optional().describe('Until then the secret before this one signs as well.'),
  createdAt: Time,
  createdBy: z.string(),
  version: z.int(),
});
export type Webhook = z.infer<typeof Webhook>;

export const IssuedWebhook = z.object({
  webhook: Webhook,
  secret: z.string().describe('whsec_…, as Standard Webhooks has it. Shown once.'),
});
export type IssuedWebhook = z.infer<typeof IssuedWebhook>;

export const NewWebhook = z.object({ url: Url, types: Types.default(['*']), description: Description.default('') });

export const WebhookChange = z.object({
  url: Url.optional(),
  types: Types.optional(),
  description: Description.optional(),
  enabled: z.boolean().optional(),
});

export const RotateWebhook = z.object({
  overlapSeconds: z
    .int()
    .min(0)
    .max(30 * 86_400)
    .default(86_400)
    .describe('How long the old secret signs as well.'),
});

export const DeliveryState = z.enum(['pending', 'delivered', 'dead']);

export const WebhookDelivery = z.object({
  id: z.string().describe('The id of the event, and the header webhook-id.'),
  webhook: z.string(),
  type: z.string(),
  subject: z.string(),
  state: DeliveryState.describe('dead: a dead letter; nothing more is tried until it is replayed.'),
  attempts: z.int(),
  createdAt: Time,
  nextAttemptAt: Time.optional(),
  lastAttempt: z
    .object({
      at: Time,
      durationMs: z.int(),
      status: z.int().optional().describe('What the receiver answered.'),
      error: z.string().optional().describe('Why there was no answer.'),
      answer: z.string().optional().describe('The first 1,024 bytes of it.'),
    })
    .optional(),
});
export type WebhookDelivery = z.infer<typeof WebhookDelivery>;

export const ReplayDead = z.object({
  cursor: z.string().min(1).max(2_000).optional().describe('From the previous answer.'),
});
export const ReplayedDead = z.object({
  replayed: z.int(),
  cursor: z.string().optional().describe('Present when there may be more: ask again with it.'),
});

export const page = <T extends z.ZodType>(item: T) =>
  z.object({
    items: z.array(item),
    cursor: z.string().optional().describe('Present when there may be more: ask again with it.'),
  });
export const WebhookPage = page(Webhook);
export const WebhookDeliveryPage = page(WebhookDelivery);
