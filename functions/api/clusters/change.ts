/** PATCH /v1/clusters/{cluster} */
import * as z from 'zod';
import { versionIn } from '#functions/runtime/conditional.ts';
import { http } from '#functions/runtime/http.ts';
import { clusterResource } from '#functions/runtime/present.ts';
import { Cluster, ClusterChange } from '#shared/schema/api/resources.ts';

export const handler = http(
  {
    method: 'PATCH',
    path: '/v1/clusters/{cluster}',
    summary: 'Label a cluster',
    description:
      'The labels replace those that it had. They are for your own lists: what other tenants see is what you publish in the directory. If-Match makes it conditional.',
    auth: 'key',
    conditional: true,
    permission: 'clusters:label',
    pathParameters: z.object({ cluster: z.string() }),
    body: ClusterChange,
    answers: { 200: { description: 'The cluster as it is now.', body: Cluster } },
  },
  async ({ control, caller, path, body, headers, signal }) => {
    const change = { labels: body.labels, ifVersion: versionIn(headers, 'if-match') };
    return { body: clusterResource(await control.clusters.label(caller, path.cluster, change, signal)) };
  },
);
