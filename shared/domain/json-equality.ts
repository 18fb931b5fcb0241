/** Whether two JSON values say the same. The order of members does not count, and a member that is undefined is absent. */
import { ownMember } from './own-member.ts';

/** Equal as JSON: null, an empty list and an absent member all differ. */
export const sameJson = (a: unknown, b: unknown): boolean => same(a, b, isAbsent);

/** Equal to an API server: an absent member, undefined, null and an empty list all say nothing. */
export const sameContent = (a: unknown, b: unknown): boolean => same(a, b, saysNothing);

function same(a: unknown, b: unknown, isNothing: (value: unknown) => boolean): boolean {
  if (a === b || (isNothing(a) && isNothing(b))) return true;
  if (Array.isArray(a) && Array.isArray(b)) {
    return a.length === b.length && a.every((item, index) => same(item, b[index], isNothing));
  }
  if (!isRecord(a) || !isRecord(b)) return false;
  const keys = new Set([...Object.keys(a), ...Object.keys(b)]);
  return [...keys].every((key) => same(ownMember(a, key), ownMember(b, key), isNothing));
}

const isAbsent = (value: unknown): boolean => value === undefined;
const saysNothing = (value: unknown): boolean =>
  value === undefined || value === null || (Array.isArray(value) && value.length === 0);
const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
