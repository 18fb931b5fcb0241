/** DELETE /v1/keys/{key} */
import * as z from 'zod';
import { http } from '#functions/runtime/http.ts';
import { apiKeyResource } from '#functions/runtime/present.ts';
import { ApiKey } from '#shared/schema/api/resources.ts';

export const handler = http(
  {
    method: 'DELETE',
    path: '/v1/keys/{key}',
    summary: 'Revoke an API key',
    description: 'A key does not revoke itself: rotate it, or use another.',
    auth: 'key',
    permission: 'keys:write',
    pathParameters: z.object({ key: z.string() }),
    refusals: ['in_use'],
    answers: { 200: { description: 'The revoked key.', body: ApiKey } },
  },
  async ({ control, caller, path, signal }) => ({
    body: apiKeyResource(await control.tenants.revokeKey(caller, path.key, signal)),
  }),
);
