/** POST /v1/peerings */
import * as z from 'zod';
import { http } from '#functions/runtime/http.ts';
import { peeringResource } from '#functions/runtime/present.ts';
import { Wait } from '#functions/runtime/wait.ts';
import { settledAnswers, whenSettled } from '#functions/runtime/wait-condition.ts';
import { NewPeering } from '#shared/schema/api/resources.ts';

export const handler = http(
  {
    method: 'POST',
    path: '/v1/peerings',
    summary: 'Peer two clusters',
    description:
      'The consumer gets one more node, backed by the provider. For a pair that is peered already, the resources are changed, and of network and labels what is named. With `wait`, answers when the peering is Ready, Failed or Gone.',
    auth: 'key',
    permission: 'peerings:write',
    query: z.object({ wait: Wait }),
    body: NewPeering,
    refusals: [
      'peer_self',
      'cluster_unknown',
      'policy_refused',
      'cluster_id_taken',
      'consent_exceeded',
      'in_use',
      'owned_by_object',
      'limit_reached',
    ],
    answers: settledAnswers('The pair was peered already; its resources are now these.'),
  },
  async ({ control, caller, body, signal }) => {
    const { consumer, provider, resources, network, labels } = body;
    const { peering, created } = await control.peerings.request(
      caller,
      { consumer, provider, resources, network, labels, ...(body.class !== undefined && { class: body.class }) },
      signal,
    );
    return { status: created ? 202 : 200, body: peeringResource(peering) };
  },
  whenSettled,
);
