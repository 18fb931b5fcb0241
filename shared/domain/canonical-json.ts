/** Compares JSON values. The order of members does not count, and a member that is `undefined` equals an absent one. */
export const canonical = (value: unknown): string =>
  JSON.stringify(value, (_key, member: unknown) =>
    typeof member === 'object' && member !== null && !Array.isArray(member)
      ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1)))
      : member,
  ) ?? 'undefined';

export const sameJson = (a: unknown, b: unknown): boolean => canonical(a) === canonical(b);
