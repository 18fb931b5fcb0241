/** DELETE /v1/peerings/{peering} */
import * as z from 'zod';
import { awaited } from '#control/events/changes.ts';
import { versionIn } from '#functions/runtime/conditional.ts';
import { http } from '#functions/runtime/http.ts';
import { peeringResource } from '#functions/runtime/present.ts';
import { Flag } from '#functions/runtime/queries.ts';
import { Wait, waitUntil } from '#functions/runtime/wait.ts';
import { locationOf } from '#functions/runtime/wait-condition.ts';
import { Peering } from '#shared/schema/api/resources.ts';

export const handler = http(
  {
    method: 'DELETE',
    path: '/v1/peerings/{peering}',
    summary: 'Unpeer',
    description:
      'Starts the end of the peering, which always comes: also when a side is dead. Repeating changes nothing. With `wait`, answers when it is Gone. With `force`, a side whose agent is silent at two looks is not waited for; refused with `peer_alive` while both are heard. If-Match makes it conditional.',
    auth: 'key',
    conditional: true,
    permission: 'peerings:write',
    pathParameters: z.object({ peering: z.string() }),
    query: z.object({ wait: Wait, force: Flag }),
    refusals: ['peer_alive'],
    answers: {
      200: { description: 'The peering is gone.', body: Peering, location: true },
      202: {
        description: 'The peering is ending: GET its Location, with `wait` to hear of the end.',
        body: Peering,
        location: true,
      },
    },
  },
  async ({ control, caller, path, query, headers, ...rest }) => {
    const ifVersion = versionIn(headers, 'if-match');
    const options = { force: query.force === true, ...(ifVersion !== undefined && { ifVersion }) };
    await control.peerings.unpeer(caller, path.peering, options, rest.signal);
    const peering = await waitUntil({
      ...rest,
      look: () => control.peerings.get(caller, path.peering, rest.signal),
      done: ({ phase }) => phase === 'Gone',
      seconds: query.wait,
      tenant: caller.tenant,
      names: awaited.peering(caller.tenant, path.peering),
    });
    const status = peering.phase === 'Gone' ? 200 : 202;
    return { status, headers: locationOf(peering), body: peeringResource(peering) };
  },
);
