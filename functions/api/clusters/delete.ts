/** DELETE /v1/clusters/{cluster} */
import * as z from 'zod';
import { http } from '#functions/runtime/http.ts';
import { clusterResource } from '#functions/runtime/present.ts';
import { Flag } from '#functions/runtime/queries.ts';
import { Cluster } from '#shared/schema/api/resources.ts';

export const handler = http(
  {
    method: 'DELETE',
    path: '/v1/clusters/{cluster}',
    summary: 'Let a cluster leave',
    description: 'Its key is no longer accepted. Refused while it has peerings, unless `force` ends them all.',
    auth: 'key',
    permission: 'clusters:remove',
    pathParameters: z.object({ cluster: z.string() }),
    query: z.object({ force: Flag }),
    refusals: ['in_use'],
    answers: { 200: { description: 'The cluster as it left.', body: Cluster } },
  },
  async ({ control, caller, path, query, signal }) => ({
    body: clusterResource(await control.clusters.remove(caller, path.cluster, { force: query.force }, signal)),
  }),
);
