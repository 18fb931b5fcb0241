/** DELETE /v1/tenants/{tenant} */
import * as z from 'zod';
import { http } from '#functions/runtime/http.ts';
import { Flag } from '#functions/runtime/queries.ts';
import { DeletionProgress } from '#shared/schema/api/tenancy.ts';

export const handler = http(
  {
    method: 'DELETE',
    path: '/v1/tenants/{tenant}',
    summary: 'Delete a tenant and everything in it',
    description:
      'For the operator of the broker; the name is repeated as a confirmation. Refused while peerings have not ended, unless `force` ends them. Repeating shows how far it is; afterwards the tenant is not found.',
    auth: 'operator',
    pathParameters: z.object({ tenant: z.string() }),
    query: z.object({ confirm: z.string().max(63).describe('The name of the tenant again.'), force: Flag }),
    refusals: ['fields_conflict', 'in_use'],
    answers: {
      200: { description: 'It is deleted.', body: DeletionProgress },
      202: { description: 'Peerings are ending; then it is deleted.', body: DeletionProgress },
    },
  },
  async ({ control, operator, path, query, signal }) => {
    const options = { confirm: query.confirm, force: query.force };
    const { state, peerings } = await control.tenants.deletion.byOperator(operator, path.tenant, options, signal);
    return { status: state === 'deleted' ? 200 : 202, body: { state, peerings } };
  },
);
