/** POST /v1/directory */
import { http } from '#functions/runtime/http.ts';
import { entryResource } from '#functions/runtime/present-cross-tenant.ts';
import { DirectoryEntry, NewDirectoryEntry } from '#shared/schema/api/cross-tenant.ts';

export const handler = http(
  {
    method: 'POST',
    path: '/v1/directory',
    summary: 'Publish a cluster, or replace its description',
    description: 'All tenants of the broker see exactly these fields, and may ask for the cluster.',
    auth: 'key',
    permission: 'directory:write',
    body: NewDirectoryEntry,
    refusals: ['cluster_unknown'],
    answers: {
      200: { description: 'The cluster was published already; this is its entry now.', body: DirectoryEntry },
      201: { description: 'The new entry.', body: DirectoryEntry },
    },
  },
  async ({ control, caller, body, signal }) => {
    const { entry, created } = await control.directory.publish(caller, body, signal);
    return { status: created ? 201 : 200, body: entryResource(entry) };
  },
);
