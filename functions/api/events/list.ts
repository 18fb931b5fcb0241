/** GET /v1/events */
import * as z from 'zod';
import { awaited } from '#control/events/changes.ts';
import { http } from '#functions/runtime/http.ts';
import { eventResource } from '#functions/runtime/present.ts';
import { Paging, pageRequest } from '#functions/runtime/queries.ts';
import { Wait, waitUntil } from '#functions/runtime/wait.ts';
import { EventPage } from '#shared/schema/api/resources.ts';

export const handler = http(
  {
    method: 'GET',
    path: '/v1/events',
    summary: 'Follow the event feed',
    description:
      'CloudEvents 1.0, oldest first, after the cursor. The answer always has a cursor: ask again with it to follow. With `wait`, answers as soon as there is an event. To follow for long, listen on the WebSocket that says when there is something new: docs/api.md of the project.',
    auth: 'key',
    permission: 'events:read',
    query: Paging.extend({
      subject: z.string().max(200).optional().describe('Only those about this subject, for example `peering/pe_…`.'),
      wait: Wait,
    }),
    refusals: ['cursor_expired'],
    answers: { 200: { description: 'Events after the cursor.', body: EventPage } },
  },
  async ({ control, caller, query, doorbellUrl, ...rest }) => {
    const page = { ...pageRequest(query), ...(query.subject !== undefined && { subject: query.subject }) };
    const { items, cursor } = await waitUntil({
      ...rest,
      look: () => control.events.list(caller, page, rest.signal),
      done: (found) => found.items.length > 0,
      seconds: query.wait,
      tenant: caller.tenant,
      names: awaited.events(caller.tenant, query.subject),
    });
    return {
      body: {
        items: items.map((event) => eventResource(control.events.present(caller, event))),
        cursor,
        ...(doorbellUrl !== undefined && { listenUrl: doorbellUrl }),
      },
    };
  },
);
