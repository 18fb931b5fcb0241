/** GET /v1/clusters/{cluster} */
import * as z from 'zod';
import { http } from '#functions/runtime/http.ts';
import { clusterResource } from '#functions/runtime/present.ts';
import { Cluster } from '#shared/schema/api/resources.ts';

export const handler = http(
  {
    method: 'GET',
    path: '/v1/clusters/{cluster}',
    summary: 'Read one cluster',
    auth: 'key',
    permission: 'clusters:read',
    pathParameters: z.object({ cluster: z.string() }),
    answers: { 200: { description: 'The cluster.', body: Cluster } },
  },
  async ({ control, caller, path, signal }) => ({
    body: clusterResource(await control.clusters.get(caller, path.cluster, signal)),
  }),
);
