/** The words of one template action. Pure. */
import type { AppError } from '#shared/errors/app-error.ts';

export type Token = { readonly text: string } & (
  | { readonly kind: 'literal'; readonly value: string | number | boolean | undefined }
  /** `attached`: nothing stands between it and what comes before. */
  | { readonly kind: 'field'; readonly path: readonly string[]; readonly variable?: string; readonly attached: boolean }
  | { readonly kind: 'word' }
  | { readonly kind: 'open' | 'close' | 'pipe' }
);

const shape =
  /(?<space>\s+)|(?<string>"(?:[^"\\]|\\[\s\S])*"|`[^`]*`)|(?<number>-?\d+(?:\.\d+)?)(?![\w.])|(?<field>\$\w*(?:\.[A-Za-z_]\w*)*|(?:\.[A-Za-z_]\w*)+|\.)|(?<word>[A-Za-z_]\w*)|(?<mark>[()|])/y;

const marks = { '(': 'open', ')': 'close', '|': 'pipe' } as const;
const words: Readonly<Record<string, boolean | undefined>> = { true: true, false: false, nil: undefined };

const unquoted = (text: string, fault: (what: string) => AppError): string => {
  if (text.startsWith('`')) return text.slice(1, -1);
  try {
    return JSON.parse(text) as string;
  } catch {
    throw fault(`${text} is no string`);
  }
};

function fieldOf(text: string): { readonly path: readonly string[]; readonly variable?: string } {
  const [first = '', ...path] = text.split('.');
  if (text === '.') return { path: [] };
  return first === '' ? { path } : { path, variable: first };
}

export function tokensOf(text: string, fault: (what: string) => AppError): readonly Token[] {
  const tokens: Token[] = [];
  const pattern = new RegExp(shape);
  let attached = false;
  while (pattern.lastIndex < text.length) {
    const from = pattern.lastIndex;
    const groups = pattern.exec(text)?.groups;
    if (groups === undefined) throw fault(`${JSON.stringify(text.slice(from, from + 20))} is not understood`);
    const { space, string, number, field, word, mark } = groups;
    if (string !== undefined) tokens.push({ kind: 'literal', text: string, value: unquoted(string, fault) });
    else if (number !== undefined) tokens.push({ kind: 'literal', text: number, value: Number(number) });
    else if (field !== undefined) tokens.push({ kind: 'field', text: field, attached, ...fieldOf(field) });
    else if (word !== undefined)
      tokens.push(
        Object.hasOwn(words, word) ? { kind: 'literal', text: word, value: words[word] } : { kind: 'word', text: word },
      );
    else if (mark !== undefined) tokens.push({ kind: marks[mark as keyof typeof marks], text: mark });
    attached = space === undefined;
  }
  return tokens;
}
