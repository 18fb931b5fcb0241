/** Query parameters that several routes share. */
import * as z from 'zod';

const limit = z.coerce.number().int().min(1).max(200).optional().describe('1 to 200, default 50.');
const cursor = z.string().min(1).max(2_000).optional().describe('From the previous answer.');
export const Paging = z.object({ limit, cursor });

/** Only what was given: exact optional properties want no `undefined`. */
export const pageRequest = (query: z.infer<typeof Paging>): { limit?: number; cursor?: string } => ({
  ...(query.limit !== undefined && { limit: query.limit }),
  ...(query.cursor !== undefined && { cursor: query.cursor }),
});

export const Flag = z
  .enum(['true', 'false', ''])
  .optional()
  .transform((text) => text === 'true' || text === '')
  .describe('true or false');
