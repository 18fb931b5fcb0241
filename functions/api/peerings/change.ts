/** PATCH /v1/peerings/{peering} */
import * as z from 'zod';
import { versionIn } from '#functions/runtime/conditional.ts';
import { http } from '#functions/runtime/http.ts';
import { peeringResource } from '#functions/runtime/present.ts';
import { Peering, PeeringChange } from '#shared/schema/api/resources.ts';

export const handler = http(
  {
    method: 'PATCH',
    path: '/v1/peerings/{peering}',
    summary: 'Label a peering',
    description:
      'The labels replace those that it had. They are for your own lists: the tenant of the other cluster does not see them and has its own. If-Match makes it conditional.',
    auth: 'key',
    conditional: true,
    permission: 'peerings:write',
    pathParameters: z.object({ peering: z.string() }),
    body: PeeringChange,
    answers: { 200: { description: 'The peering as it is now.', body: Peering } },
  },
  async ({ control, caller, path, body, headers, signal }) => {
    const change = { labels: body.labels, ifVersion: versionIn(headers, 'if-match') };
    return { body: peeringResource(await control.peerings.label(caller, path.peering, change, signal)) };
  },
);
