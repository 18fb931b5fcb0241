/** POST /v1/approval-rules */
import { http } from '#functions/runtime/http.ts';
import { ruleResource } from '#functions/runtime/present-cross-tenant.ts';
import { ApprovalRule, NewApprovalRule } from '#shared/schema/api/cross-tenant.ts';

export const handler = http(
  {
    method: 'POST',
    path: '/v1/approval-rules',
    summary: 'Let requests be approved automatically',
    description: 'Decides on requests that come after it. Any one rule that allows a request approves it.',
    auth: 'key',
    permission: 'approval-rules:write',
    body: NewApprovalRule,
    refusals: ['limit_reached'],
    answers: { 201: { description: 'The new rule.', body: ApprovalRule } },
  },
  async ({ control, caller, body, signal }) => ({
    status: 201,
    body: ruleResource(await control.approvalRules.create(caller, body, signal)),
  }),
);
