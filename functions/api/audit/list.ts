/** GET /v1/audit */
import * as z from 'zod';
import { http } from '#functions/runtime/http.ts';
import { auditResource, pageOf } from '#functions/runtime/present.ts';
import { given } from '#functions/runtime/present-tenancy.ts';
import { Paging } from '#functions/runtime/queries.ts';
import { AuditPage } from '#shared/schema/api/resources.ts';

const Exactly = z.string().max(200).optional();
const Time = z.iso.datetime().optional();

export const handler = http(
  {
    method: 'GET',
    path: '/v1/audit',
    summary: 'Read the audit log',
    description:
      'Newest first: principal, address, and the object before and after each change. One request looks at 1,000 records at most: with a filter a page may be short, even empty, and have a cursor with which the search goes on.',
    auth: 'key',
    permission: 'audit:read',
    query: Paging.extend({
      subject: Exactly,
      action: Exactly.describe('For example `api-key.revoke`.'),
      principal: Exactly.describe('For example `api-key/ak_…` or `operator/ok_…`.'),
      since: Time.describe('Records of this time or later.'),
      until: Time.describe('Records before this time.'),
    }),
    answers: { 200: { description: 'A page of audit records.', body: AuditPage } },
  },
  async ({ control, caller, query, signal }) => {
    const { since, until, ...rest } = given(query);
    const filter = {
      ...rest,
      ...(since !== undefined && { since: Date.parse(since) }),
      ...(until !== undefined && { until: Date.parse(until) }),
    };
    return { body: pageOf(await control.audit.list(caller, filter, signal), auditResource) };
  },
);
