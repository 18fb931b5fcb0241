/** TypeScript types from the JSON schemas of the OpenAPI document. */

export interface JsonSchema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly JsonSchema[];
  readonly oneOf?: readonly JsonSchema[];
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly items?: JsonSchema;
  readonly additionalProperties?: boolean | JsonSchema;
  readonly propertyNames?: JsonSchema;
  readonly description?: string;
}

/** What is sent may be frozen; what is received belongs to the receiver. */
export type Direction = 'sent' | 'received';

/** Query parameters are text; these two words are what a boolean becomes. */
const isFlag = (values: readonly unknown[]): boolean => values.includes('true') && values.includes('false');

const literals = (values: readonly unknown[]): string => values.map((value) => JSON.stringify(value)).join(' | ');

export const docComment = (text: string | undefined): string =>
  text === undefined ? '' : `/** ${text.replaceAll('*/', '* /').replaceAll(/\s+/g, ' ')} */\n`;

const propertyName = (name: string): string => (/^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name));

/** One type, on as many lines as it takes; the formatter lays it out. */
export function typeText(schema: JsonSchema, direction: Direction): string {
  if (schema.$ref !== undefined) return schema.$ref.slice(schema.$ref.lastIndexOf('/') + 1);
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return isFlag(schema.enum) ? 'boolean' : literals(schema.enum);
  const choices = schema.anyOf ?? schema.oneOf;
  if (choices) return choices.map((choice) => typeText(choice, direction)).join(' | ');
  const { type } = schema;
  if (Array.isArray(type)) return type.map((one) => typeText({ ...schema, type: one }, direction)).join(' | ');
  switch (type) {
    case 'string':
    case 'boolean':
    case 'null':
      return type;
    case 'integer':
    case 'number':
      return 'number';
    case 'array':
      return `${direction === 'sent' ? 'readonly ' : ''}(${typeText(schema.items ?? {}, direction)})[]`;
    case 'object':
      return objectText(schema, direction);
    default:
      return 'unknown';
  }
}

function objectText(schema: JsonSchema, direction: Direction): string {
  const { properties = {}, required = [], additionalProperties, propertyNames } = schema;
  const rows = Object.entries(properties).map(([name, member]) => {
    const text = typeText(member, direction);
    const optional = required.includes(name) ? `: ${text}` : `?: ${text} | undefined`;
    return `${docComment(member.description)}${propertyName(name)}${optional};`;
  });
  if (rows.length > 0) return `{\n${rows.join('\n')}\n}`;
  const values = typeof additionalProperties === 'object' ? typeText(additionalProperties, direction) : 'unknown';
  if (propertyNames?.enum) return `Partial<Record<${literals(propertyNames.enum)}, ${values}>>`;
  const record = `Record<string, ${values}>`;
  return direction === 'sent' ? `Readonly<${record}>` : record;
}
