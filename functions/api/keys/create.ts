/** POST /v1/keys */
import * as z from 'zod';
import { permissionNames } from '#control/access/caller.ts';
import { http } from '#functions/runtime/http.ts';
import { issuedKeyResource } from '#functions/runtime/present.ts';
import { IssuedApiKey, NewApiKey } from '#shared/schema/api/resources.ts';

export const handler = http(
  {
    method: 'POST',
    path: '/v1/keys',
    summary: 'Make an API key',
    auth: 'key',
    permission: 'keys:write',
    body: NewApiKey.extend({ scopes: z.array(z.enum(permissionNames)).min(1).optional() }),
    refusals: ['fields_conflict'],
    answers: { 201: { description: 'The key; its secret is shown once.', body: IssuedApiKey } },
    answerHolds: 'secret',
  },
  async ({ control, caller, body, signal }) => {
    const { name, role, scopes, expiresInSeconds } = body;
    const issued = await control.tenants.createKey(
      caller,
      { name, role, ...(scopes && { scopes }), ...(expiresInSeconds !== undefined && { expiresInSeconds }) },
      signal,
    );
    return { status: 201, body: issuedKeyResource(issued) };
  },
);
