/** GET /v1/peerings/{peering} */
import * as z from 'zod';
import { awaited } from '#control/events/changes.ts';
import { versionIn } from '#functions/runtime/conditional.ts';
import { http } from '#functions/runtime/http.ts';
import { peeringResource } from '#functions/runtime/present.ts';
import { Wait, waitUntil } from '#functions/runtime/wait.ts';
import { isSettled } from '#functions/runtime/wait-condition.ts';
import { Peering } from '#shared/schema/api/resources.ts';

export const handler = http(
  {
    method: 'GET',
    path: '/v1/peerings/{peering}',
    summary: 'Read one peering',
    description:
      'With `wait`, answers when it is Ready, Failed or Gone; with If-None-Match as well, as soon as it differs from that version, or 304 when the time is up.',
    auth: 'key',
    permission: 'peerings:read',
    pathParameters: z.object({ peering: z.string() }),
    query: z.object({ wait: Wait }),
    answers: {
      200: { description: 'The peering.', body: Peering },
      304: { description: 'It still has the version of If-None-Match.' },
    },
  },
  async ({ control, caller, path, query, headers, ...rest }) => {
    const known = versionIn(headers, 'if-none-match');
    const peering = await waitUntil({
      ...rest,
      look: () => control.peerings.get(caller, path.peering, rest.signal),
      done: (view) => (known === undefined ? isSettled(view) : view.version !== known),
      seconds: query.wait,
      tenant: caller.tenant,
      names: awaited.peering(caller.tenant, path.peering),
    });
    if (peering.version === known) return { status: 304, headers: { etag: `"${known}"` } };
    return { body: peeringResource(peering) };
  },
);
