/** GET /v1/directory */
import * as z from 'zod';
import { http } from '#functions/runtime/http.ts';
import { pageOf } from '#functions/runtime/present.ts';
import { entryResource } from '#functions/runtime/present-cross-tenant.ts';
import { Flag, Paging, pageRequest } from '#functions/runtime/queries.ts';
import { DirectoryPage } from '#shared/schema/api/cross-tenant.ts';

/** `tier=gold,zone=b` */
const Labels = z
  .string()
  .regex(/^[^=,]+=[^=,]*(,[^=,]+=[^=,]*)*$/, 'must be KEY=VALUE, more than one separated by commas')
  .transform((text) => Object.fromEntries(text.split(',').map((pair) => pair.split('=', 2) as [string, string])))
  .optional();

export const handler = http(
  {
    method: 'GET',
    path: '/v1/directory',
    summary: 'List published clusters of all tenants',
    auth: 'key',
    permission: 'directory:read',
    query: Paging.extend({
      region: z.string().max(100).optional(),
      labels: Labels.describe('Only those with all of these labels, KEY=VALUE separated by commas.'),
      class: z.string().max(100).optional().describe('Only those that offer this class.'),
      mine: Flag,
    }),
    answers: { 200: { description: 'A page of published clusters.', body: DirectoryPage } },
  },
  async ({ control, caller, query, signal }) => {
    const { region, labels, mine } = query;
    const filter = {
      ...pageRequest(query),
      mine,
      ...(region !== undefined && { region }),
      ...(labels && { labels }),
      ...(query.class !== undefined && { class: query.class }),
    };
    return { body: pageOf(await control.directory.list(caller, filter, signal), entryResource) };
  },
);
