/** GET /v1/tenant/export */
import * as z from 'zod';
import { http } from '#functions/runtime/http.ts';
import { cursor } from '#functions/runtime/queries.ts';

export const handler = http(
  {
    method: 'GET',
    path: '/v1/tenant/export',
    summary: 'Export everything of the tenant',
    description:
      'JSON lines {kind, id, version, value}, without any secret. The header x-next-cursor is there while more follows: ask again with it.',
    auth: 'key',
    permission: 'tenant:export',
    query: z.object({ cursor }),
    answers: { 200: { description: 'A page of lines.', body: z.string(), type: 'application/x-ndjson' } },
  },
  async ({ control, caller, query, signal }) => {
    const { lines, cursor } = await control.tenants.export.page(caller, query.cursor, signal);
    return {
      text: { type: 'application/x-ndjson', content: lines.map((line) => `${JSON.stringify(line)}\n`).join('') },
      ...(cursor !== undefined && { headers: { 'x-next-cursor': cursor } }),
    };
  },
);
