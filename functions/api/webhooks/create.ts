/** POST /v1/webhooks */
import { http } from '#functions/runtime/http.ts';
import { issuedWebhookResource } from '#functions/runtime/present-webhooks.ts';
import { IssuedWebhook, NewWebhook } from '#shared/schema/api/webhooks.ts';

export const handler = http(
  {
    method: 'POST',
    path: '/v1/webhooks',
    summary: 'Make a webhook',
    description:
      'From now on events of these types are posted to the URL, signed as Standard Webhooks says; see docs/events.md.',
    auth: 'key',
    permission: 'webhooks:write',
    body: NewWebhook,
    refusals: ['url_refused', 'event_type_unknown', 'webhooks_unavailable', 'limit_reached'],
    answers: { 201: { description: 'The webhook; its secret is shown once.', body: IssuedWebhook } },
    answerHolds: 'secret',
  },
  async ({ control, caller, body, signal }) => ({
    status: 201,
    body: issuedWebhookResource(await control.webhooks.create(caller, body, signal)),
  }),
);
