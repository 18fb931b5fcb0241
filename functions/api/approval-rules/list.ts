/** GET /v1/approval-rules */
import { http } from '#functions/runtime/http.ts';
import { pageOf } from '#functions/runtime/present.ts';
import { ruleResource } from '#functions/runtime/present-cross-tenant.ts';
import { Paging, pageRequest } from '#functions/runtime/queries.ts';
import { ApprovalRulePage } from '#shared/schema/api/cross-tenant.ts';

export const handler = http(
  {
    method: 'GET',
    path: '/v1/approval-rules',
    summary: 'List approval rules',
    auth: 'key',
    permission: 'approval-rules:read',
    query: Paging,
    answers: { 200: { description: 'A page of rules.', body: ApprovalRulePage } },
  },
  async ({ control, caller, query, signal }) => ({
    body: pageOf(await control.approvalRules.list(caller, pageRequest(query), signal), ruleResource),
  }),
);
