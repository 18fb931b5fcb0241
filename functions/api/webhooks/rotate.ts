/** POST /v1/webhooks/{webhook}/rotate */
import * as z from 'zod';
import { http } from '#functions/runtime/http.ts';
import { issuedWebhookResource } from '#functions/runtime/present-webhooks.ts';
import { IssuedWebhook, RotateWebhook } from '#shared/schema/api/webhooks.ts';

export const handler = http(
  {
    method: 'POST',
    path: '/v1/webhooks/{webhook}/rotate',
    summary: 'Replace the secret of a webhook',
    description: 'During the overlap every delivery carries two signatures: of the new secret and of the old one.',
    auth: 'key',
    permission: 'webhooks:write',
    pathParameters: z.object({ webhook: z.string() }),
    body: RotateWebhook,
    refusals: ['webhooks_unavailable'],
    answers: { 201: { description: 'The new secret, shown once.', body: IssuedWebhook } },
    answerHolds: 'secret',
  },
  async ({ control, caller, path, body, signal }) => ({
    status: 201,
    body: issuedWebhookResource(await control.webhooks.rotate(caller, path.webhook, body.overlapSeconds, signal)),
  }),
);
