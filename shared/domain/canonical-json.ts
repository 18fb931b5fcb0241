/** The text of a JSON value, independent of the order of its members; a member that is `undefined` counts as absent. */
export const canonical = (value: unknown): string =>
  JSON.stringify(value, (_key, member: unknown) =>
    typeof member === 'object' && member !== null && !Array.isArray(member)
      ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1)))
      : member,
  ) ?? 'undefined';
