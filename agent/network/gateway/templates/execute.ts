/** What a parsed template comes to for some data: text, or the value of a single expression. Pure. */
import type { AppError } from '#shared/errors/app-error.ts';
import { type Expression, parseTemplate, type TemplateNode, templateFault } from './parse.ts';

/** `dot` is what `.` means at the moment; outside of `range` and `with`, the root. */
interface Scope {
  readonly dot: unknown;
  readonly root: unknown;
  readonly variables: ReadonlyMap<string, unknown>;
  readonly fault: (what: string) => AppError;
  /** What is left of `mostWork`, for the whole text. */
  readonly work: { left: number };
}

/** Steps and characters that one text may take: ranges within ranges multiply. */
const mostWork = 100_000;

function spend({ work, fault }: Scope, amount: number): void {
  work.left -= amount;
  if (work.left < 0) throw fault(`it takes more than ${mostWork} steps and characters; use fewer ranges within ranges`);
}

/** Go's zero value, and what is absent. */
export const isZero = (value: unknown): boolean =>
  value === undefined ||
  value === null ||
  value === '' ||
  value === 0 ||
  value === false ||
  (typeof value === 'object' && Object.keys(value).length === 0);

/** Go names fields `MTU` and `LoadBalancerIP`, JSON `mtu` and `loadBalancerIP`: capitals do not count where the exact name is absent. */
function member(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  if (Object.hasOwn(value, name)) return (value as Record<string, unknown>)[name];
  const lower = name.toLowerCase();
  return Object.entries(value).find(([key]) => key.toLowerCase() === lower)?.[1];
}

function evaluate(expression: Expression, scope: Scope): unknown {
  switch (expression.kind) {
    case 'literal':
      return expression.value;
    case 'field': {
      const { path, variable, of } = expression;
      if (variable !== undefined && !scope.variables.has(variable)) throw scope.fault(`${variable} is not defined`);
      const start =
        of === undefined ? (variable === undefined ? scope.dot : scope.variables.get(variable)) : evaluate(of, scope);
      if (start === scope.root) requireKnown(path[0], scope);
      return path.reduce(member, start);
    }
    case 'call':
      return call(expression, scope);
  }
}

/** A misspelt root would silently come to nothing. Deeper fields may be absent: most of them are optional. */
function requireKnown(name: string | undefined, { root, fault }: Scope): void {
  const known = Object.keys(root as object);
  if (name === undefined || known.some((one) => one.toLowerCase() === name.toLowerCase())) return;
  throw fault(`field .${name} is not known, accepted: ${known.map((one) => `.${one}`).join(', ')}`);
}

type Call = Extract<Expression, { kind: 'call' }>;
const comparisons = {
  gt: (a: number | string, b: number | string) => a > b,
  ge: (a: number | string, b: number | string) => a >= b,
  lt: (a: number | string, b: number | string) => a < b,
  le: (a: number | string, b: number | string) => a <= b,
} as const;

function call({ name, args }: Call, scope: Scope): unknown {
  // The rest is not looked at once it cannot matter, as in Go.
  if (name === 'and' || name === 'or') {
    let value: unknown;
    for (const arg of args) {
      value = evaluate(arg, scope);
      if (isZero(value) === (name === 'and')) break;
    }
    return value;
  }
  const [first, ...others] = args.map((arg) => evaluate(arg, scope));
  switch (name) {
    case 'not':
      return isZero(first);
    case 'len':
      return lengthOf(first, scope);
    case 'index':
      return others.reduce((value, key) => at(value, key, scope), first);
    case 'eq':
      return others.some((other) => same(first, other));
    case 'ne':
      return !same(first, others[0]);
    default:
      return compare(comparisons[name], first, others[0], name, scope);
  }
}

function at(value: unknown, key: unknown, { fault }: Scope): unknown {
  if (typeof key === 'object' && key !== null) throw fault('index takes numbers and texts, not objects and lists');
  return Array.isArray(value) && typeof key === 'number' ? value[key] : member(value, String(key));
}

/** An absent number is 0, an absent text empty: Go has no absent fields. */
const same = (a: unknown, b: unknown): boolean => a === b || (isZero(a) && isZero(b));

function lengthOf(value: unknown, { fault }: Scope): number {
  if (value === undefined || value === null) return 0;
  if (typeof value === 'string') return value.length;
  if (typeof value === 'object') return Object.keys(value).length;
  throw fault(`len of ${JSON.stringify(value)}`);
}

function compare(
  holds: (a: number | string, b: number | string) => boolean,
  a: unknown,
  b: unknown,
  name: string,
  { fault }: Scope,
): boolean {
  const [x, y] = [a ?? (typeof b === 'string' ? '' : 0), b ?? (typeof a === 'string' ? '' : 0)];
  if (typeof x === 'number' && typeof y === 'number') return holds(x, y);
  if (typeof x === 'string' && typeof y === 'string') return holds(x, y);
  throw fault(`${name} cannot compare ${JSON.stringify(a)} with ${JSON.stringify(b)}`);
}

function print(value: unknown, scope: Scope): string {
  if (value === undefined || value === null) return '';
  if (Array.isArray(value)) return `[${value.map((item) => print(item, scope)).join(' ')}]`;
  if (typeof value === 'object') throw scope.fault('an object was to be printed; name a field in it');
  return String(value);
}

function run(nodes: readonly TemplateNode[], scope: Scope): string {
  return nodes.map((node) => runOne(node, scope)).join('');
}

function runOne(node: TemplateNode, scope: Scope): string {
  spend(scope, 1);
  switch (node.kind) {
    case 'text':
      spend(scope, node.text.length);
      return node.text;
    case 'print': {
      const text = print(evaluate(node.value, scope), scope);
      spend(scope, text.length);
      return text;
    }
    case 'if':
      return run(isZero(evaluate(node.value, scope)) ? node.otherwise : node.body, scope);
    case 'with': {
      const dot = evaluate(node.value, scope);
      return isZero(dot) ? run(node.otherwise, scope) : run(node.body, { ...scope, dot });
    }
    case 'range':
      return runRange(node, scope);
  }
}

function runRange(node: Extract<TemplateNode, { kind: 'range' }>, scope: Scope): string {
  const over = evaluate(node.value, scope);
  if (isZero(over)) return run(node.otherwise, scope);
  if (typeof over !== 'object' || over === null) throw scope.fault(`range over ${JSON.stringify(over)}`);
  const entries: readonly (readonly [unknown, unknown])[] = Array.isArray(over)
    ? [...over.entries()]
    : Object.entries(over).sort(([a], [b]) => (a < b ? -1 : 1));
  return entries
    .map(([key, value]) => {
      spend(scope, 1);
      const bound = node.variables.length === 2 ? [key, value] : [value];
      const variables = new Map([...scope.variables, ...node.variables.map((name, i) => [name, bound[i]] as const)]);
      return run(node.body, { ...scope, dot: value, variables });
    })
    .join('');
}

const scopeOf = (source: string, data: object): Scope => ({
  dot: data,
  root: data,
  variables: new Map([['$', data]]),
  fault: (what) => templateFault(source, what),
  work: { left: mostWork },
});

export const renderText = (source: string, data: object): string => run(parseTemplate(source), scopeOf(source, data));

/** Whether the template reads anything at all: text without actions is what it says. */
export const isTemplate = (source: string): boolean => source.includes('{{');

/** The value of the first field that the template names; undefined when it names none. */
export function firstField(source: string, data: object): { readonly value: unknown } | undefined {
  const field = firstIn(parseTemplate(source));
  return field === undefined ? undefined : { value: evaluate(field, scopeOf(source, data)) };
}

function firstIn(nodes: readonly TemplateNode[]): Expression | undefined {
  for (const node of nodes) {
    if (node.kind === 'text') continue;
    const found = fieldIn(node.value);
    if (found !== undefined) return found;
    if (node.kind === 'print') continue;
    const inside = firstIn(node.body) ?? firstIn(node.otherwise);
    if (inside !== undefined) return inside;
  }
  return undefined;
}

function fieldIn(expression: Expression): Expression | undefined {
  if (expression.kind === 'field') {
    const { path, variable, of } = expression;
    if (of !== undefined) return fieldIn(of);
    return path.length > 0 && (variable === undefined || variable === '$') ? expression : undefined;
  }
  if (expression.kind === 'literal') return undefined;
  for (const arg of expression.args) {
    const found = fieldIn(arg);
    if (found !== undefined) return found;
  }
  return undefined;
}
