/** PATCH /v1/event-targets/{target} */
import * as z from 'zod';
import { versionIn } from '#functions/runtime/conditional.ts';
import { http } from '#functions/runtime/http.ts';
import { given } from '#functions/runtime/present-tenancy.ts';
import { eventTargetResource } from '#functions/runtime/present-webhooks.ts';
import { EventTarget, EventTargetChange } from '#shared/schema/api/event-targets.ts';

export const handler = http(
  {
    method: 'PATCH',
    path: '/v1/event-targets/{target}',
    summary: 'Change an event target, or switch it off or on',
    description:
      'What happens while it is disabled is not sent to it later; what waited for it becomes dead letters when its time comes. Another bus or queue is another event target. If-Match makes it conditional.',
    auth: 'key',
    conditional: true,
    permission: 'webhooks:write',
    pathParameters: z.object({ target: z.string() }),
    body: EventTargetChange,
    refusals: ['event_type_unknown'],
    answers: { 200: { description: 'The event target as it is now.', body: EventTarget } },
  },
  async ({ control, caller, path, body, headers, signal }) => {
    const ifVersion = versionIn(headers, 'if-match');
    const options = ifVersion === undefined ? {} : { ifVersion };
    return {
      body: eventTargetResource(await control.eventTargets.change(caller, path.target, given(body), options, signal)),
    };
  },
);
