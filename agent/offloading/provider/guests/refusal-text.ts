/** What refusals of guests' objects say: the setting that decides, and the first field that is not of its form. Pure. */
import type * as z from 'zod';
import { deny, type Verdict } from '#agent/admission/review.ts';
import type { GuestRules } from './decide.ts';

export const settingText = (rule: keyof GuestRules): string => `(guests.${rule} of the provider's PeeringPolicy)`;

/** `at`: where the parsed value is in the object, with a dot at the end. */
export function malformed({ issues: [issue] }: z.ZodError, at = ''): Verdict {
  return deny('invalid_input', `${at}${issue?.path.join('.')}: ${issue?.message}`);
}
