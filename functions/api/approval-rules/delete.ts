/** DELETE /v1/approval-rules/{rule} */
import * as z from 'zod';
import { http } from '#functions/runtime/http.ts';
import { ruleResource } from '#functions/runtime/present-cross-tenant.ts';
import { ApprovalRule } from '#shared/schema/api/cross-tenant.ts';

export const handler = http(
  {
    method: 'DELETE',
    path: '/v1/approval-rules/{rule}',
    summary: 'Delete an approval rule',
    description: 'What it approved stays approved.',
    auth: 'key',
    permission: 'approval-rules:write',
    pathParameters: z.object({ rule: z.string() }),
    answers: { 200: { description: 'The rule that was.', body: ApprovalRule } },
  },
  async ({ control, caller, path, signal }) => ({
    body: ruleResource(await control.approvalRules.delete(caller, path.rule, signal)),
  }),
);
