/** `a=b`, `a!=b`, `a` and `!a`, joined by commas, as an API server reads them. */
export function selects(selector: string | undefined, labels: Readonly<Record<string, string>> = {}): boolean {
  return (selector ?? '').split(',').every((term) => {
    const [, key = '', operator, value] = /^(!?[^!=]*)(!?=)?(.*)$/.exec(term.trim()) ?? [];
    if (key === '') return true;
    if (operator === '=') return labels[key] === value;
    if (operator === '!=') return labels[key] !== value;
    return key.startsWith('!') ? !(key.slice(1) in labels) : key in labels;
  });
}
