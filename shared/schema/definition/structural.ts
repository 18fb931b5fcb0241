/**
 * Turns a zod schema into a structural schema: the subset of OpenAPI 3.0 that the API server takes for custom kinds. What has no structural form
 * is refused here, with the path, rather than at `kubectl apply`.
 */
import * as z from 'zod';

export interface StructuralSchema {
  readonly type?: 'object' | 'array' | 'string' | 'integer' | 'number' | 'boolean';
  readonly description?: string;
  readonly format?: string;
  readonly default?: unknown;
  readonly enum?: readonly unknown[];
  readonly pattern?: string;
  readonly properties?: Readonly<Record<string, StructuralSchema>>;
  readonly additionalProperties?: StructuralSchema;
  readonly items?: StructuralSchema;
  readonly required?: readonly string[];
  readonly anyOf?: readonly StructuralSchema[];
  readonly 'x-kubernetes-int-or-string'?: true;
  readonly 'x-kubernetes-preserve-unknown-fields'?: true;
  readonly [other: string]: unknown;
}

type Json = Record<string, unknown>;

/** Copied as they are. Everything else is either handled below or refused. */
const plain = new Set([
  'type',
  'description',
  'format',
  'default',
  'enum',
  'minLength',
  'maxLength',
  'minimum',
  'maximum',
  'exclusiveMinimum',
  'exclusiveMaximum',
  'minItems',
  'maxItems',
  'minProperties',
  'maxProperties',
  'x-kubernetes-validations',
  'x-kubernetes-list-type',
  'x-kubernetes-list-map-keys',
  'x-kubernetes-map-type',
  'x-kubernetes-preserve-unknown-fields',
]);

const refuse = (at: string, why: string): never => {
  throw new TypeError(`${at || 'the root'}: ${why}`);
};

export function structuralSchema(schema: z.ZodType, name = ''): StructuralSchema {
  const emitted = z.toJSONSchema(schema, {
    target: 'openapi-3.0',
    io: 'input',
    reused: 'inline',
    cycles: 'throw',
    unrepresentable: 'any',
  });
  return structural(emitted as Json, name);
}

function structural(node: Json, at: string): StructuralSchema {
  if (node['x-kubernetes-int-or-string'] === true) return intOrString(node);
  const result: Json = {};
  for (const [keyword, value] of Object.entries(node)) {
    if (plain.has(keyword)) result[keyword] = value;
    else if (keyword === 'pattern') result.pattern = re2(String(value), at);
    else if (keyword === 'properties') result.properties = children(value as Json, at);
    else if (keyword === 'items') result.items = structural(value as Json, `${at}[]`);
    else if (keyword === 'required') result.required = value;
    else if (keyword === 'additionalProperties') mapValues(result, node, at);
    else if (keyword === 'oneOf' || keyword === 'anyOf' || keyword === 'allOf' || keyword === 'not')
      refuse(at, `${keyword} is not structural: use a kind field, optional members and a CEL rule`);
    else if (keyword === '$ref') refuse(at, 'references are not structural: the schema has an `id`, remove it');
    else refuse(at, `the API server knows no keyword ${keyword}`);
  }
  integerFormat(result);
  stringFormat(result, at);
  if (result.type === undefined) refuse(at, 'has no type: describe it with `.meta({ type })` or use `opaque()`');
  if (result.type === 'array' && result.items === undefined) refuse(at, 'an array needs items');
  return inReadingOrder(result);
}

/** What it is, what it accepts, what is inside: members come last. */
function inReadingOrder(node: Json): StructuralSchema {
  const last = ['required', 'properties', 'additionalProperties', 'items'];
  const rank = (keyword: string): number =>
    keyword === 'description' ? 0 : keyword === 'type' ? 1 : last.includes(keyword) ? 3 + last.indexOf(keyword) : 2;
  return Object.fromEntries(Object.entries(node).sort(([a], [b]) => rank(a) - rank(b)));
}

const children = (properties: Json, at: string): Json =>
  Object.fromEntries(
    Object.entries(properties).map(([key, value]) => [
      key,
      structural(value as Json, at === '' ? key : `${at}.${key}`),
    ]),
  );

/** `properties` beside `additionalProperties` is forbidden; unknown members are pruned anyway. */
function mapValues(result: Json, node: Json, at: string): void {
  if (node.properties !== undefined || node['x-kubernetes-preserve-unknown-fields'] === true) return;
  const values = node.additionalProperties;
  if (typeof values === 'object' && values !== null)
    result.additionalProperties = structural(values as Json, `${at}.*`);
  else refuse(at, 'an object needs properties, or a schema for the values of a map');
}

function intOrString(node: Json): StructuralSchema {
  const { description, default: fallback } = node;
  const pattern = (node.anyOf as readonly Json[] | undefined)?.find((branch) => branch.type === 'string')?.pattern;
  return {
    ...(description === undefined ? {} : { description: String(description) }),
    anyOf: [{ type: 'integer' }, { type: 'string' }],
    ...(pattern === undefined ? {} : { pattern: String(pattern) }),
    ...(fallback === undefined ? {} : { default: fallback }),
    'x-kubernetes-int-or-string': true,
  };
}

/** The API server's regular expressions are RE2: no lookaround, no back-references. */
function re2(pattern: string, at: string): string {
  if (/\(\?(?!:)/.test(pattern)) refuse(at, `pattern ${pattern} uses lookaround or named groups, which RE2 lacks`);
  if (/\\[1-9k]/.test(pattern)) refuse(at, `pattern ${pattern} uses a back-reference, which RE2 lacks`);
  return pattern.replaceAll('\\/', '/');
}

/** Of a string with a format the API server takes a list as well: the pattern has to say all. */
function stringFormat(node: Json, at: string): void {
  if (node.type !== 'string' || node.format === undefined) return;
  if (node.pattern === undefined)
    refuse(
      at,
      `format ${String(node.format)} without a pattern: of a string with a format the API server takes a list`,
    );
  delete node.format;
}

/** zod writes the bounds of its integers; the API server has names for them. */
function integerFormat(node: Json): void {
  if (node.type !== 'integer') return;
  const is32 = node.minimum === -2_147_483_648 || node.maximum === 2_147_483_647;
  node.format ??= is32 ? 'int32' : 'int64';
  for (const bound of [Number.MIN_SAFE_INTEGER, -2_147_483_648]) if (node.minimum === bound) delete node.minimum;
  for (const bound of [Number.MAX_SAFE_INTEGER, 2_147_483_647]) if (node.maximum === bound) delete node.maximum;
}
