/** Kinds of text that people write. */
import * as z from 'zod';

/** No control characters. Written with code points, as not every reader of the OpenAPI document knows Unicode classes. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused
const noControls = /^[^\u0000-\u001f\u007f-\u009f]*$/;

/** What `new URL` reads, roughly: the rest (addresses, ports) is refused as `url_refused`. */
export const webUrl = (max: number): z.ZodString =>
  z
    .string()
    .max(max)
    .regex(/^https?:\/\/[^\s/?#]+([/?#]\S*)?$/, 'must be https://HOST[:PORT][/PATH]');

export const printable = (text: z.ZodString): z.ZodString =>
  text
    .regex(noControls, 'must hold no control characters')
    .refine((value) => value.isWellFormed(), 'must hold no half of a surrogate pair');
