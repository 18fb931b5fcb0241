/** GET /v1/peerings */
import * as z from 'zod';
import { http } from '#functions/runtime/http.ts';
import { pageOf, peeringResource } from '#functions/runtime/present.ts';
import { Flag, Paging, pageRequest, Selector } from '#functions/runtime/queries.ts';
import { selects } from '#shared/domain/label-selector.ts';
import { codeOf } from '#shared/errors/app-error.ts';
import { PeeringPage } from '#shared/schema/api/resources.ts';

export const handler = http(
  {
    method: 'GET',
    path: '/v1/peerings',
    summary: 'List peerings',
    description: 'With `consumer` and `provider`, the one of that pair, also when it is gone but still kept.',
    auth: 'key',
    permission: 'peerings:read',
    query: Paging.extend({
      includeGone: Flag,
      cluster: z.string().max(63).optional().describe('Only those in which this cluster takes part.'),
      consumer: z.string().max(63).optional(),
      provider: z.string().max(63).optional(),
      labels: Selector,
    }),
    answers: { 200: { description: 'A page of peerings.', body: PeeringPage } },
  },
  async ({ control, caller, query, signal }) => {
    const { consumer, provider, cluster, includeGone, labels } = query;
    if (consumer !== undefined && provider !== undefined) {
      const found = await control.peerings.find(caller, consumer, provider, signal).catch((error: unknown) => {
        if (codeOf(error) === 'not_found' || codeOf(error) === 'cluster_unknown') return undefined;
        throw error;
      });
      return { body: { items: found && selects(labels ?? [], found.labels) ? [peeringResource(found)] : [] } };
    }
    const one = cluster ?? consumer ?? provider;
    const page = await control.peerings.list(
      caller,
      { ...pageRequest(query), includeGone, ...(one !== undefined && { cluster: one }), ...(labels && { labels }) },
      signal,
    );
    const items = page.items.filter(
      (p) => (consumer === undefined || p.consumer === consumer) && (provider === undefined || p.provider === provider),
    );
    return { body: pageOf({ ...page, items }, peeringResource) };
  },
);
