/** GET /v1/peerings/{peering}/samples */
import * as z from 'zod';
import { http } from '#functions/runtime/http.ts';
import { seriesResource } from '#functions/runtime/present.ts';
import { PeeringSeries, SampleSpan } from '#shared/schema/api/network.ts';

export const handler = http(
  {
    method: 'GET',
    path: '/v1/peerings/{peering}/samples',
    summary: 'Read what was measured of a peering lately',
    description:
      'Round trip, loss and throughput of its link, and how much of the grant is in use, for graphs. Agents measure each minute and tell with their reports, which come every five minutes while nothing else changes. Kept for a day.',
    auth: 'key',
    permission: 'peerings:read',
    pathParameters: z.object({ peering: z.string() }),
    query: z.object({
      span: SampleSpan.default('hour').describe('`hour`: a point each minute. `day`: each 15 minutes.'),
    }),
    answers: { 200: { description: 'The series of both ends, as far as the tenant has them.', body: PeeringSeries } },
  },
  async ({ control, caller, path, query, signal }) => ({
    body: seriesResource(await control.peerings.samples(caller, path.peering, query.span, signal)),
  }),
);
