/** Names in a sentence: the first few, and how many there are besides. Pure. */
const namesShown = 3;

/** `a, b, c and 10 more`; all of them when there are no more than `shown`. */
export function nameList(names: readonly string[], shown = namesShown): string {
  const more = names.length - shown;
  return more <= 0 ? names.join(', ') : `${names.slice(0, shown).join(', ')} and ${more} more`;
}
