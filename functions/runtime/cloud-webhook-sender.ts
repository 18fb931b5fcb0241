/** For functions that post to webhooks. */
import { createWebhookHttp } from '#control/adapters/webhook-http/webhook-http.ts';
import type { WebhookSender } from '#control/ports/webhook-sender.ts';
import type { PartDeps } from './cloud.ts';

/** Finishes an attempt that was begun: the platform ends the process soon enough, and the sender's deadline leaves room for one attempt. */
export function publicWebhookSender({ env }: PartDeps): WebhookSender {
  const sender = createWebhookHttp({ allowPrivateAddresses: env.PRIVATE_WEBHOOKS });
  return { refusal: (url) => sender.refusal(url), post: (post) => sender.post(post) };
}
