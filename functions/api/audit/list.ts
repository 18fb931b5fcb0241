/** GET /v1/audit */
import * as z from 'zod';
import { http } from '#functions/runtime/http.ts';
import { auditResource, pageOf } from '#functions/runtime/present.ts';
import { Paging, pageRequest } from '#functions/runtime/queries.ts';
import { AuditPage } from '#shared/schema/api/resources.ts';

export const handler = http(
  {
    method: 'GET',
    path: '/v1/audit',
    summary: 'Read the audit log',
    description: 'Newest first: principal, address, and the object before and after each change.',
    auth: 'key',
    permission: 'audit:read',
    query: Paging.extend({ subject: z.string().max(200).optional() }),
    answers: { 200: { description: 'A page of audit records.', body: AuditPage } },
  },
  async ({ control, caller, query, signal }) => ({
    body: pageOf(
      await control.audit.list(
        caller,
        { ...pageRequest(query), ...(query.subject !== undefined && { subject: query.subject }) },
        signal,
      ),
      auditResource,
    ),
  }),
);
