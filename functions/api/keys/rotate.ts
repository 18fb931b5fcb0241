/** POST /v1/keys/{key}/rotate */
import * as z from 'zod';
import { http } from '#functions/runtime/http.ts';
import { issuedKeyResource } from '#functions/runtime/present.ts';
import { IssuedApiKey, RotateApiKey } from '#shared/schema/api/resources.ts';

export const handler = http(
  {
    method: 'POST',
    path: '/v1/keys/{key}/rotate',
    summary: 'Replace an API key',
    description: 'A new secret with the same rights.',
    auth: 'key',
    permission: 'keys:write',
    pathParameters: z.object({ key: z.string() }),
    body: RotateApiKey,
    refusals: ['in_use'],
    answers: { 201: { description: 'The new key; its secret is shown once.', body: IssuedApiKey } },
    answerHolds: 'secret',
  },
  async ({ control, caller, path, body, signal }) => ({
    status: 201,
    body: issuedKeyResource(await control.tenants.rotateKey(caller, path.key, body.overlapSeconds, signal)),
  }),
);
