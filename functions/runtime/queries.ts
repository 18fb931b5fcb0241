/** Query parameters that several routes share. */
import * as z from 'zod';
import { parseSelector, selectorPattern } from '#shared/domain/label-selector.ts';

const numberFrom = <S extends z.ZodNumber>(form: RegExp, schema: S) =>
  z.preprocess((text) => (typeof text === 'string' && form.test(text) ? Number(text) : text), schema);

/** A number as people write it: no sign, no exponent, no hexadecimal, no blanks, and nothing is not zero. */
export const decimal = <S extends z.ZodNumber>(schema: S) => numberFrom(/^\d{1,15}(\.\d{1,20})?$/, schema);

/** As `decimal`, and with an exponent, as JSON writes very small numbers. */
export const fraction = <S extends z.ZodNumber>(schema: S) =>
  numberFrom(/^\d{1,15}(\.\d{1,20})?(e[+-]?\d{1,3})?$/i, schema);

const limit = decimal(z.number().int().min(1).max(200)).optional().describe('1 to 200, default 50.');
export const cursor = z
  .string()
  .max(800)
  .regex(/^[-A-Za-z0-9_.]+$/, 'must be a cursor as the list handed it out')
  .optional()
  .describe('From the previous answer.');
export const Paging = z.object({ limit, cursor });

/** Only what was given: exact optional properties want no `undefined`. */
export const pageRequest = (query: z.infer<typeof Paging>): { limit?: number; cursor?: string } => ({
  ...(query.limit !== undefined && { limit: query.limit }),
  ...(query.cursor !== undefined && { cursor: query.cursor }),
});

/** `tier=gold,zone`, parsed. */
export const Selector = z
  .string()
  .max(2_000)
  .regex(selectorPattern, 'must be KEY=VALUE or KEY, more than one separated by commas')
  .transform(parseSelector)
  .optional()
  .describe('Only those with all of these labels: KEY=VALUE, or KEY for any value, separated by commas.');

export const Flag = z
  .enum(['true', 'false', ''])
  .optional()
  .transform((text) => text === 'true' || text === '')
  .describe('true or false');
