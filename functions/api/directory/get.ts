/** GET /v1/directory/{tenant}/{cluster} */
import * as z from 'zod';
import { http } from '#functions/runtime/http.ts';
import { entryResource } from '#functions/runtime/present-cross-tenant.ts';
import { DirectoryEntry } from '#shared/schema/api/cross-tenant.ts';

export const handler = http(
  {
    method: 'GET',
    path: '/v1/directory/{tenant}/{cluster}',
    summary: 'Read one published cluster',
    auth: 'key',
    permission: 'directory:read',
    pathParameters: z.object({ tenant: z.string(), cluster: z.string() }),
    answers: { 200: { description: 'The entry.', body: DirectoryEntry } },
  },
  async ({ control, caller, path, signal }) => ({
    body: entryResource(await control.directory.get(caller, path.tenant, path.cluster, signal)),
  }),
);
