/** For functions that post to webhooks. */
import { createWebhookHttp } from '#control/adapters/webhook-http/webhook-http.ts';
import type { WebhookSender } from '#control/ports/webhook-sender.ts';
import type { PartDeps } from './cloud.ts';

/** Ends an attempt that was begun: the platform ends the process soon enough, and the deadline of who posts leaves room for one. */
export function publicWebhookSender({ env }: PartDeps): WebhookSender {
  const sender = createWebhookHttp({ allowPrivateAddresses: env.PRIVATE_WEBHOOKS });
  return { refusal: (url) => sender.refusal(url), post: (post) => sender.post(post) };
}
