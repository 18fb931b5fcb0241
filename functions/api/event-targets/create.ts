/** POST /v1/event-targets */
import { http } from '#functions/runtime/http.ts';
import { eventTargetResource } from '#functions/runtime/present-webhooks.ts';
import { EventTarget, NewEventTarget } from '#shared/schema/api/event-targets.ts';

export const handler = http(
  {
    method: 'POST',
    path: '/v1/event-targets',
    summary: 'Make an event target',
    description:
      'From now on events of these types are put into your EventBridge bus or SQS queue, as a role of your account; see docs/events.md for its two policies. Send a test to see whether they are right.',
    auth: 'key',
    permission: 'webhooks:write',
    body: NewEventTarget,
    refusals: ['event_type_unknown', 'event_targets_unavailable', 'limit_reached'],
    answers: { 201: { description: 'The event target, with whom its role has to trust.', body: EventTarget } },
  },
  async ({ control, caller, body, signal }) => ({
    status: 201,
    body: eventTargetResource(await control.eventTargets.create(caller, body, signal)),
  }),
);
