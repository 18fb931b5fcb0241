/** Trees as the text of a Helm template. Pure. */
import type { Condition, Tree } from './tree.ts';

/** What stands in objects for a value, and the expression that gives it. */
export interface Sentinel {
  readonly mark: string;
  readonly expression: string;
  /** In names of objects. */
  readonly inNames?: string;
  /** `map`: the only key of a map that it stands for as a whole. */
  readonly type: 'string' | 'int' | 'map';
}

/** `quote` of Helm writes escapes that YAML does not know. */
const literal = (text: string): string => `{{ ${JSON.stringify(text)} | toJson }}`;

function stringOf(value: string, key: string, sentinels: readonly Sentinel[]): string {
  const used = sentinels.filter(({ mark }) => value.includes(mark));
  if (used.length === 0) return value.includes('{{') ? literal(value) : JSON.stringify(value);
  const [only] = used as [Sentinel];
  // Variables of the environment are texts.
  if (value === only.mark && only.type === 'int' && key !== 'value') return `{{ int ${only.expression} }}`;
  let pieces: (string | Sentinel)[] = [value];
  for (const one of used)
    pieces = pieces.flatMap((piece) =>
      typeof piece === 'string'
        ? piece.split(one.mark).flatMap((part, index) => (index === 0 ? [part] : [one, part]))
        : [piece],
    );
  const words = pieces
    .filter((piece) => piece !== '')
    .map((piece) => {
      if (typeof piece === 'string') return JSON.stringify(piece);
      if (piece.type === 'int') return `(toString (int ${piece.expression}))`;
      return key === 'name' ? (piece.inNames ?? piece.expression) : piece.expression;
    });
  return words.length === 1 ? `{{ ${words[0]} | toJson }}` : `{{ print ${words.join(' ')} | toJson }}`;
}

export function emitter(sentinels: readonly Sentinel[]): (tree: Tree) => string {
  const inline = (tree: Tree, key: string): string | undefined => {
    if (tree.kind === 'scalar')
      return typeof tree.value === 'string' ? stringOf(tree.value, key, sentinels) : JSON.stringify(tree.value);
    if (tree.kind === 'choice') {
      const branches = tree.options.map(({ when, tree: one }, index) => {
        const text = inline(one, key);
        if (text === undefined) throw new Error(`${key} is a text in one variant and none in another`);
        return `{{ ${index === 0 ? 'if' : 'else if'} ${when} }}${text}`;
      });
      return `${branches.join('')}{{ end }}`;
    }
    if (tree.kind === 'list') return tree.items.size === 0 ? '[]' : undefined;
    const [first] = tree.entries.keys();
    if (first === undefined) return '{}';
    const map = sentinels.find(({ mark, type }) => type === 'map' && mark === first);
    return map && `{{ ${map.expression} | toJson }}`;
  };

  const guarded = (when: Condition, indent: string, lines: readonly string[]): string[] =>
    when === undefined ? [...lines] : [`${indent}{{- if ${when} }}`, ...lines, `${indent}{{- end }}`];

  const block = (tree: Tree, indent: string): string[] => {
    if (tree.kind === 'map')
      return [...tree.entries].flatMap(([key, { when, tree: one }]) => {
        const value = inline(one, key);
        const name = `${indent}${/^[\w./-]+$/.test(key) ? key : JSON.stringify(key)}:`;
        return guarded(when, indent, value === undefined ? [name, ...block(one, `${indent}  `)] : [`${name} ${value}`]);
      });
    if (tree.kind === 'list')
      return [...tree.items.values()].flatMap(({ when, tree: one }) => {
        const value = inline(one, '');
        if (value !== undefined) return guarded(when, indent, [`${indent}- ${value}`]);
        return guarded(when, indent, [`${indent}-`, ...block(one, `${indent}  `)]);
      });
    throw new Error('a document is no map');
  };
  return (tree) => block(tree, '').join('\n');
}
