/** POST /v1/tenant/deletion */
import { http } from '#functions/runtime/http.ts';
import { DeletionRequested } from '#shared/schema/api/tenancy.ts';

export const handler = http(
  {
    method: 'POST',
    path: '/v1/tenant/deletion',
    summary: 'Ask for the deletion of the tenant',
    description: 'Changes nothing yet: the answer holds what POST /v1/tenant/deletion/confirm needs.',
    auth: 'key',
    permission: 'tenant:delete',
    answers: { 201: { description: 'What to confirm with.', body: DeletionRequested } },
    answerHolds: 'secret',
  },
  async ({ control, caller, signal }) => {
    const { confirmation, expiresAt, peerings } = await control.tenants.deletion.request(caller, signal);
    return {
      status: 201,
      body: { confirmation, expiresAt: new Date(expiresAt).toISOString(), peerings: [...peerings] },
    };
  },
);
