/** PATCH /v1/webhooks/{webhook} */
import * as z from 'zod';
import { versionIn } from '#functions/runtime/conditional.ts';
import { http } from '#functions/runtime/http.ts';
import { given } from '#functions/runtime/present-tenancy.ts';
import { webhookResource } from '#functions/runtime/present-webhooks.ts';
import { Webhook, WebhookChange } from '#shared/schema/api/webhooks.ts';

export const handler = http(
  {
    method: 'PATCH',
    path: '/v1/webhooks/{webhook}',
    summary: 'Change a webhook, or switch it off or on',
    description:
      'What happens while it is disabled is not sent to it later; what waited for it becomes dead letters when its time comes. If-Match makes it conditional.',
    auth: 'key',
    conditional: true,
    permission: 'webhooks:write',
    pathParameters: z.object({ webhook: z.string() }),
    body: WebhookChange,
    refusals: ['url_refused', 'event_type_unknown', 'webhooks_unavailable'],
    answers: { 200: { description: 'The webhook as it is now.', body: Webhook } },
  },
  async ({ control, caller, path, body, headers, signal }) => {
    const ifVersion = versionIn(headers, 'if-match');
    const options = ifVersion === undefined ? {} : { ifVersion };
    return { body: webhookResource(await control.webhooks.change(caller, path.webhook, given(body), options, signal)) };
  },
);
