/** POST /v1/invitations/redeem */
import * as z from 'zod';
import { http } from '#functions/runtime/http.ts';
import { peeringResource } from '#functions/runtime/present.ts';
import { Wait } from '#functions/runtime/wait.ts';
import { settledAnswers, whenSettled } from '#functions/runtime/wait-condition.ts';
import { NewRedemption } from '#shared/schema/api/cross-tenant.ts';

export const handler = http(
  {
    method: 'POST',
    path: '/v1/invitations/redeem',
    summary: 'Use an invitation of another tenant',
    description:
      "Peers a cluster of yours as consumer with the cluster of the invitation. Your own cluster's PeeringPolicy must accept it. With `wait`, answers when the peering is Ready, Failed or Gone.",
    auth: 'key',
    permission: 'peerings:write',
    query: z.object({ wait: Wait }),
    body: NewRedemption,
    refusals: [
      'invitation_unknown',
      'invitation_closed',
      'cluster_unknown',
      'policy_refused',
      'consent_exceeded',
      'cluster_id_taken',
      'in_use',
      'limit_reached',
    ],
    answers: settledAnswers('This cluster has used this invitation already; its peering.'),
  },
  async ({ control, caller, body, signal }) => {
    const { class: name, ...rest } = body;
    const input = { ...rest, ...(name !== undefined && { class: name }) };
    const { peering, created } = await control.invitations.redeem(caller, input, signal);
    return { status: created ? 202 : 200, body: peeringResource(peering) };
  },
  whenSettled,
);
