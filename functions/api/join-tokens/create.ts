/** POST /v1/join-tokens */
import { http } from '#functions/runtime/http.ts';
import { joinTokenResource } from '#functions/runtime/present.ts';
import { JoinTokenAnswer, NewJoinToken } from '#shared/schema/api/resources.ts';

export const handler = http(
  {
    method: 'POST',
    path: '/v1/join-tokens',
    summary: 'Make a join token',
    description:
      'The agent of the named cluster enrols with it: once, within 15 minutes. `replaceKey` needs `clusters:replace-key`, too.',
    auth: 'key',
    permission: 'clusters:join',
    body: NewJoinToken,
    answers: { 201: { description: 'The token, shown once.', body: JoinTokenAnswer } },
    answerHolds: 'secret',
  },
  async ({ control, caller, body, signal }) => ({
    status: 201,
    body: joinTokenResource(await control.clusters.createJoinToken(caller, body.cluster, body, signal)),
  }),
);
