/** The subset of Go's text/template that gateway templates use (docs/design/networking.md#how-are-gateways-rendered), from text to tree. Pure. */
import { AppError } from '#shared/errors/app-error.ts';
import { type Token, tokensOf } from './tokens.ts';

export type Expression =
  | { readonly kind: 'literal'; readonly value: string | number | boolean | undefined }
  /** `.A.B`, or `$x.A` when `variable` is set, or `(…).A` when `of` is. */
  | {
      readonly kind: 'field';
      readonly path: readonly string[];
      readonly variable?: string;
      readonly of?: Expression;
    }
  | { readonly kind: 'call'; readonly name: FunctionName; readonly args: readonly Expression[] };

const functionNames = ['len', 'gt', 'ge', 'lt', 'le', 'eq', 'ne', 'and', 'or', 'not', 'index'] as const;
type FunctionName = (typeof functionNames)[number];

export type TemplateNode =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'print'; readonly value: Expression }
  | {
      readonly kind: 'if' | 'with';
      readonly value: Expression;
      readonly body: readonly TemplateNode[];
      readonly otherwise: readonly TemplateNode[];
    }
  | {
      readonly kind: 'range';
      readonly value: Expression;
      /** Index and element, or the element alone. */
      readonly variables: readonly string[];
      readonly body: readonly TemplateNode[];
      readonly otherwise: readonly TemplateNode[];
    };

type Part = { readonly text: string } | { readonly action: string };

export const templateFault = (source: string, what: string): AppError => {
  const shown = source.length > 1_000 ? `${source.slice(0, 1_000)}…` : source;
  return new AppError('invalid_input', `template ${JSON.stringify(shown)}: ${what}`);
};

/** Text and actions, with the white space gone that `{{-` and `-}}` ask to drop. */
function split(source: string): Part[] {
  const parts: Part[] = [];
  let rest = 0;
  let trims = false;
  for (;;) {
    const start = source.indexOf('{{', rest);
    const raw = start < 0 ? source.slice(rest) : source.slice(rest, start);
    const text = trims ? raw.trimStart() : raw;
    if (start < 0) {
      if (text !== '') parts.push({ text });
      return parts;
    }
    const end = closing(source, start);
    const inner = source.slice(start + 2, end);
    const trimsBefore = /^-\s/.test(inner);
    trims = /\s-$/.test(inner);
    const kept = trimsBefore ? text.trimEnd() : text;
    if (kept !== '') parts.push({ text: kept });
    const action = inner.slice(trimsBefore ? 1 : 0, trims ? -1 : undefined).trim();
    if (!/^\/\*[\s\S]*\*\/$/.test(action)) parts.push({ action });
    rest = end + 2;
  }
}

/** Where the `}}` of the action at `start` is; those inside quotes do not count. */
function closing(source: string, start: number): number {
  let quote = '';
  for (let i = start + 2; i < source.length; i++) {
    const c = source[i] ?? '';
    if (quote !== '') {
      if (c === '\\' && quote === '"') i++;
      else if (c === quote) quote = '';
    } else if (c === '"' || c === '`') quote = c;
    else if (c === '}' && source[i + 1] === '}') return i;
  }
  throw templateFault(source, 'an action has no closing }}');
}

/** Of one text; `words` of one action. What is parsed and executed is no deeper than this. */
const most = { actions: 200, words: 200, characters: 32_768 } as const;

/** Fails with `invalid_input` that names the template and what is wrong in it. */
export function parseTemplate(source: string): readonly TemplateNode[] {
  if (source.length > most.characters && source.includes('{{'))
    throw templateFault(source, `it has ${source.length} characters, accepted beside actions are ${most.characters}`);
  const parts = split(source);
  const actions = parts.filter((part) => 'action' in part).length;
  if (actions > most.actions) throw templateFault(source, `it has ${actions} actions, accepted are ${most.actions}`);
  let at = 0;

  type End = 'end' | 'else' | `else ${string}` | undefined;
  function block(): { readonly body: TemplateNode[]; readonly end: End } {
    const body: TemplateNode[] = [];
    for (;;) {
      const part = parts[at++];
      if (part === undefined) return { body, end: undefined };
      if ('text' in part) {
        body.push({ kind: 'text', text: part.text });
        continue;
      }
      const [, word = '', rest = ''] = /^([a-z]*)\b\s*([\s\S]*)$/.exec(part.action) ?? [];
      if (word === 'end' || word === 'else')
        return { body, end: rest === '' ? word : (`${word} ${rest}` as `else ${string}`) };
      if (word === 'if' || word === 'with') body.push(branch(word, rest));
      else if (word === 'range') body.push(range(rest));
      else body.push({ kind: 'print', value: expression(part.action) });
    }
  }

  function branch(kind: 'if' | 'with', condition: string): TemplateNode {
    const value = expression(condition);
    const { body, end } = block();
    return { kind, value, body, otherwise: otherwise(kind, end) };
  }

  function otherwise(kind: 'if' | 'with' | 'range', end: End): readonly TemplateNode[] {
    if (end === 'end') return [];
    if (end === 'else') {
      const last = block();
      if (last.end !== 'end') throw templateFault(source, `{{ ${kind} }} has no {{ end }} after its {{ else }}`);
      return last.body;
    }
    const [, word, rest = ''] = /^else\s+(if|with)\b\s*([\s\S]*)$/.exec(end ?? '') ?? [];
    if (word === 'if' || word === 'with') return [branch(word, rest)];
    throw templateFault(source, `{{ ${kind} }} has no {{ end }}`);
  }

  function range(text: string): TemplateNode {
    const [, names, rest] = /^(\$\w+(?:\s*,\s*\$\w+)?)\s*:=\s*([\s\S]*)$/.exec(text) ?? [];
    const value = expression(rest ?? text);
    const { body, end } = block();
    const variables = names?.split(',').map((name) => name.trim()) ?? [];
    return { kind: 'range', value, variables, body, otherwise: otherwise('range', end) };
  }

  const expression = (text: string): Expression => parseExpression(text, (what) => templateFault(source, what));

  const { body, end } = block();
  if (end !== undefined) throw templateFault(source, `{{ ${end} }} closes nothing`);
  return body;
}

function parseExpression(text: string, fault: (what: string) => AppError): Expression {
  const tokens = tokensOf(text, fault);
  if (tokens.length > most.words) throw fault(`an action has ${tokens.length} words, accepted are ${most.words}`);
  let at = 0;
  const peek = (): Token | undefined => tokens[at];

  function pipeline(): Expression {
    let value = command(undefined);
    while (peek()?.kind === 'pipe') {
      at++;
      value = command(value);
    }
    return value;
  }

  /** `piped` becomes the last argument of the function that follows the bar. */
  function command(piped: Expression | undefined): Expression {
    const token = peek();
    if (token?.kind !== 'word') {
      if (piped !== undefined) throw fault('only a function can follow |');
      return operand();
    }
    const name = functionNames.find((known) => known === token.text);
    if (name === undefined)
      throw fault(`function ${JSON.stringify(token.text)} is not known, accepted: ${functionNames.join(', ')}`);
    at++;
    const args: Expression[] = [];
    for (let next = peek(); next !== undefined && next.kind !== 'pipe' && next.kind !== 'close'; next = peek())
      args.push(operand());
    if (piped !== undefined) args.push(piped);
    if (args.length === 0) throw fault(`${name} needs an argument`);
    return { kind: 'call', name, args };
  }

  function operand(): Expression {
    const token = tokens[at++];
    if (token === undefined) throw fault('an action is empty');
    switch (token.kind) {
      case 'literal':
        return { kind: 'literal', value: token.value };
      case 'field':
        return {
          kind: 'field',
          path: token.path,
          ...(token.variable === undefined ? {} : { variable: token.variable }),
        };
      case 'open': {
        const value = pipeline();
        if (tokens[at++]?.kind !== 'close') throw fault('a parenthesis is not closed');
        const next = peek();
        if (next?.kind !== 'field' || next.variable !== undefined || !next.attached) return value;
        at++;
        return { kind: 'field', path: next.path, of: value };
      }
      default:
        throw fault(`${JSON.stringify(token.text)} is out of place`);
    }
  }

  const value = pipeline();
  const left = peek();
  if (left !== undefined) throw fault(`${JSON.stringify(left.text)} is out of place`);
  return value;
}
