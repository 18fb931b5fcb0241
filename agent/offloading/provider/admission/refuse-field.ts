/** How the rules for guests refuse a field. */
import { deny, type Verdict } from '#agent/admission/review.ts';

/** `why`: what is wrong with the value, and what would be accepted. */
export const refuseField = (field: string, value: unknown, why: string): Verdict =>
  deny('sandbox_refused', `${field} is ${JSON.stringify(value)}: ${why}`);
