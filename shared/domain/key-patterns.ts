/** Lists of keys in which a `*` ends a prefix, as administrators write them into policies. Pure. */

/** `*` at the end of a pattern stands for any rest. */
export const matchesAny = (patterns: readonly string[], text: string): boolean =>
  patterns.some((one) => (one.endsWith('*') ? text.startsWith(one.slice(0, -1)) : one === text));
