/** POST /v1/tenant/deletion/confirm */
import { http } from '#functions/runtime/http.ts';
import { DeletionConfirmation, DeletionProgress } from '#shared/schema/api/tenancy.ts';

export const handler = http(
  {
    method: 'POST',
    path: '/v1/tenant/deletion/confirm',
    summary: 'Delete the tenant and everything in it',
    description:
      'Cannot be undone, and the name is never given again. Refused while peerings have not ended, unless `force` unpeers them; then the tenant can only be read until they are gone.',
    auth: 'key',
    permission: 'tenant:delete',
    body: DeletionConfirmation,
    refusals: ['fields_conflict', 'in_use'],
    answers: {
      200: { description: 'It is deleted; every key is void.', body: DeletionProgress },
      202: { description: 'Peerings are ending; then it is deleted.', body: DeletionProgress },
    },
    whileDeleting: true,
  },
  async ({ control, caller, body, signal }) => {
    const { state, peerings } = await control.tenants.deletion.confirm(caller, body, signal);
    return { status: state === 'deleted' ? 200 : 202, body: { state, peerings: [...peerings] } };
  },
);
