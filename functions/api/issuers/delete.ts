/** DELETE /v1/issuers/{issuer} */
import * as z from 'zod';
import { http } from '#functions/runtime/http.ts';
import { issuerResource } from '#functions/runtime/present-tenancy.ts';
import { Issuer } from '#shared/schema/api/tenancy.ts';

export const handler = http(
  {
    method: 'DELETE',
    path: '/v1/issuers/{issuer}',
    summary: 'Remove an identity provider',
    description: 'Its tokens are refused from then on.',
    auth: 'key',
    permission: 'issuers:write',
    pathParameters: z.object({ issuer: z.string() }),
    answers: { 200: { description: 'The issuer as it was.', body: Issuer } },
  },
  async ({ control, caller, path, signal }) => ({
    body: issuerResource(await control.tenants.issuers.remove(caller, path.issuer, signal)),
  }),
);
