/** DELETE /v1/directory/{cluster} */
import * as z from 'zod';
import { http } from '#functions/runtime/http.ts';
import { entryResource } from '#functions/runtime/present-cross-tenant.ts';
import { DirectoryEntry } from '#shared/schema/api/cross-tenant.ts';

export const handler = http(
  {
    method: 'DELETE',
    path: '/v1/directory/{cluster}',
    summary: 'Take a cluster of yours out of the directory',
    description: 'Other tenants no longer see it or can ask for it; peerings and pending requests stay.',
    auth: 'key',
    permission: 'directory:write',
    pathParameters: z.object({ cluster: z.string() }),
    answers: { 200: { description: 'The entry that was.', body: DirectoryEntry } },
  },
  async ({ control, caller, path, signal }) => ({
    body: entryResource(await control.directory.unpublish(caller, path.cluster, signal)),
  }),
);
