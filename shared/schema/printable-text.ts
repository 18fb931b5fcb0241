/** Text that people write and that terminals and logs show. */
import type * as z from 'zod';

/** No control characters. Written with code points, as not every reader of the OpenAPI document knows Unicode classes. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused
const noControls = /^[^\u0000-\u001f\u007f-\u009f]*$/;

export const printable = (text: z.ZodString): z.ZodString =>
  text
    .regex(noControls, 'must hold no control characters')
    .refine((value) => value.isWellFormed(), 'must hold no half of a surrogate pair');
