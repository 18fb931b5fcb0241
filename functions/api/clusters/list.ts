/** GET /v1/clusters */
import { http } from '#functions/runtime/http.ts';
import { clusterResource, pageOf } from '#functions/runtime/present.ts';
import { Flag, Paging, pageRequest, Selector } from '#functions/runtime/queries.ts';
import { ClusterPage } from '#shared/schema/api/resources.ts';

export const handler = http(
  {
    method: 'GET',
    path: '/v1/clusters',
    summary: 'List the clusters that joined',
    auth: 'key',
    permission: 'clusters:read',
    query: Paging.extend({ includeLeft: Flag, labels: Selector }),
    answers: { 200: { description: 'A page of clusters.', body: ClusterPage } },
  },
  async ({ control, caller, query, signal }) => {
    const { includeLeft, labels } = query;
    const filter = { ...pageRequest(query), includeLeft, ...(labels && { labels }) };
    return { body: pageOf(await control.clusters.list(caller, filter, signal), clusterResource) };
  },
);
