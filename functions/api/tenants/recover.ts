/** POST /v1/tenants/{tenant}/recovery */
import * as z from 'zod';
import { http } from '#functions/runtime/http.ts';
import { issuedKeyResource } from '#functions/runtime/present.ts';
import { IssuedApiKey } from '#shared/schema/api/resources.ts';
import { TenantRecovery } from '#shared/schema/api/tenancy.ts';

export const handler = http(
  {
    method: 'POST',
    path: '/v1/tenants/{tenant}/recovery',
    summary: 'Give a tenant a key whose own ones are lost',
    description:
      'An admin key that lives for a day. For the operator of the broker; the audit log of the tenant says which operator it was and why.',
    auth: 'operator',
    pathParameters: z.object({ tenant: z.string() }),
    body: TenantRecovery,
    refusals: ['tenant_deleting'],
    answers: { 201: { description: 'The key; its secret is shown once.', body: IssuedApiKey } },
    answerHolds: 'secret',
  },
  async ({ control, operator, path, body, signal }) => ({
    status: 201,
    body: issuedKeyResource(await control.tenants.operators.recover(operator, path.tenant, body.reason, signal)),
  }),
);
