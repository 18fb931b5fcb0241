/** The typed client of the REST API, and the schemas that its answers are checked with: from the OpenAPI document and from the routes it comes from. */
import { spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';
import path from 'node:path';
import { openApiDocument } from '#functions/openapi.ts';
import { httpFunctions } from '#functions/routes.ts';
import * as across from '#shared/schema/api/cross-tenant.ts';
import * as eventTargets from '#shared/schema/api/event-targets.ts';
import * as network from '#shared/schema/api/network.ts';
import * as resources from '#shared/schema/api/resources.ts';
import * as tenancy from '#shared/schema/api/tenancy.ts';
import * as webhooks from '#shared/schema/api/webhooks.ts';
import { docComment, type JsonSchema, typeText } from './typescript-types.ts';

export const apiClientPath = 'shared/api-client/broker-api.ts';
export const apiAnswersPath = 'shared/api-client/answers.ts';

interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly tags: readonly string[];
  readonly parameters?: readonly {
    readonly name: string;
    readonly in: string;
    readonly required?: boolean;
    readonly description?: string;
    readonly schema: JsonSchema;
  }[];
  readonly requestBody?: { readonly content: Content };
  readonly responses: Readonly<Record<string, { readonly content?: Content }>>;
}
type Content = Readonly<Record<string, { readonly schema: JsonSchema }>>;

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, JsonSchema>> };
}

interface Described extends Operation {
  readonly method: string;
  readonly path: string;
}

const operationsOf = ({ paths }: Document): readonly Described[] =>
  Object.entries(paths)
    .flatMap(([at, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({ ...operation, method: method.toUpperCase(), path: at })),
    )
    // Agents sign each request with the key of their cluster: another client.
    .filter(({ tags }) => !tags.includes('agent protocol'));

/** What comes with the statuses of success; undefined: no body. */
const successes = ({ responses }: Operation): readonly (JsonSchema | undefined)[] =>
  Object.entries(responses)
    .filter(([status]) => /^[23]/.test(status))
    .map(([, { content }]) => Object.values(content ?? {})[0]?.schema);

const answerText = (operation: Operation): string =>
  [...new Set(successes(operation).map((schema) => (schema ? typeText(schema, 'received') : 'undefined')))].join(' | ');

/** Members of one place as an object schema: path parameters, or the query. */
function parametersIn(operation: Operation, place: string): JsonSchema | undefined {
  const found = (operation.parameters ?? []).filter((parameter) => parameter.in === place);
  if (found.length === 0) return undefined;
  return {
    type: 'object',
    properties: Object.fromEntries(
      found.map(({ name, schema, description }) => [name, { ...schema, ...(description && { description }) }]),
    ),
    required: found.filter(({ required }) => required).map(({ name }) => name),
  };
}

function inputText(operation: Operation): string {
  const body = operation.requestBody && Object.values(operation.requestBody.content)[0]?.schema;
  const parts = { path: parametersIn(operation, 'path'), query: parametersIn(operation, 'query'), body };
  const members = Object.entries(parts).flatMap(([name, schema]) => {
    if (!schema) return [];
    const optional = name !== 'body' && (schema.required ?? []).length === 0;
    return [{ optional, text: `${name}${optional ? '?' : ''}: ${typeText(schema, 'sent')};` }];
  });
  if (members.length === 0) return 'input?: Record<string, never>';
  const text = `{ ${members.map((member) => member.text).join(' ')} }`;
  return members.every(({ optional }) => optional) ? `input?: ${text}` : `input: ${text}`;
}

const methodText = (operation: Described): string =>
  `${docComment(operation.summary)}${operation.operationId}(${inputText(operation)}, options?: Options): Promise<${answerText(operation)}>;`;

const runtime = `
/** One request, ready to be sent to the URL of the broker: \`path\` is filled in and begins with /v1. */
export interface ApiRequest {
  readonly operation: OperationName;
  readonly method: string;
  readonly path: string;
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  /** To be sent as JSON. */
  readonly body?: unknown;
}

/** Transport, provided by the user of the client: sends, rejects for problems, resolves with the parsed body. */
export type Send<Options> = (request: ApiRequest, options?: Options) => Promise<unknown>;

export type OperationName = keyof typeof operations;

interface Input {
  readonly path?: Readonly<Record<string, string>>;
  readonly query?: NonNullable<ApiRequest['query']>;
  readonly body?: unknown;
}

/** \`Options\` are the sender's own, for example headers or a deadline. */
export function createBrokerApi<Options>(send: Send<Options>): BrokerApi<Options> {
  const calls = Object.entries(operations).map(([operation, [method, template]]) => [
    operation,
    ({ path = {}, ...rest }: Input = {}, options?: Options) => {
      const filled = template.replaceAll(/\\{(\\w+)\\}/g, (_, name: string) => encodeURIComponent(path[name] ?? ''));
      return send({ operation: operation as OperationName, method, path: filled, ...rest }, options);
    },
  ]);
  return Object.fromEntries(calls) as BrokerApi<Options>;
}
`;

/** Formatted as everything else here. */
function formatted(text: string): string {
  const biome = createRequire(import.meta.url).resolve('@biomejs/biome/bin/biome');
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [biome, 'format', `--stdin-file-path=${path.basename(apiClientPath)}`],
    { input: text, encoding: 'utf8' },
  );
  if (status !== 0) throw new Error(`the generated client cannot be formatted: ${stderr}`);
  return stdout;
}

export function apiClient(): string {
  const document = openApiDocument() as Document;
  const operations = operationsOf(document);
  const used = new Set<string>();
  const methods = operations.map(methodText).join('\n\n');
  const note = (text: string): void => {
    for (const name of Object.keys(document.components.schemas)) {
      if (used.has(name) || !new RegExp(`\\b${name}\\b`).test(text.replaceAll(/\/\*\*.*\*\//g, ''))) continue;
      used.add(name);
      note(typeText(document.components.schemas[name] ?? {}, 'received'));
    }
  };
  note(methods);
  used.add('Problem');
  const types = [...used]
    .sort()
    .map((name) => `export interface ${name} ${typeText(document.components.schemas[name] ?? {}, 'received')}`);
  const table = operations.map(({ operationId, method, path: at }) => `${operationId}: ['${method}', '${at}'],`);
  return formatted(`/**
 * The REST API of the broker, typed: written by \`npm run gen\` from functions/api/openapi.json. It imports nothing: take it along, and give
 * \`createBrokerApi\` what sends a request (cli/broker/broker-client.ts is an example with retries and problems).
 */

${types.join('\n\n')}

export const operations = {
${table.join('\n')}
} as const;
${runtime}
export interface BrokerApi<Options = unknown> {
${methods}
}
`);
}

const modules = {
  resources,
  'cross-tenant': across,
  tenancy,
  webhooks,
  'event-targets': eventTargets,
  network,
} as const;

const identifierOf = (file: string): string => file.replaceAll(/-(.)/g, (_, letter: string) => letter.toUpperCase());

/** Where a schema is exported. */
function exportOf(schema: unknown): string | undefined {
  for (const [module, exported] of Object.entries(modules)) {
    const name = Object.entries(exported).find(([, value]) => value === schema)?.[0];
    if (name !== undefined) return `${identifierOf(module)}.${name}`;
  }
  return undefined;
}

/** By operation. An answer whose schema is exported nowhere is not listed. */
export function apiAnswers(): string {
  const routes = new Map(httpFunctions.map(({ route }) => [`${route.method} ${route.path}`, route]));
  const rows = operationsOf(openApiDocument() as Document).flatMap(({ operationId, method, path: at }) => {
    const answers = Object.entries(routes.get(`${method} ${at}`)?.answers ?? {});
    const bodies = answers.flatMap(([, { body }]) => body ?? []);
    const name = bodies.every((body) => body === bodies[0]) ? exportOf(bodies[0]) : undefined;
    if (name === undefined) return [];
    return [`${operationId}: ${name}${answers.some(([, { body }]) => body === undefined) ? '.optional()' : ''},`];
  });
  const imports = Object.keys(modules)
    .sort()
    .map((name) => `import * as ${identifierOf(name)} from '#shared/schema/api/${name}.ts';`);
  return formatted(`/** The schema of each operation's answer: written by \`npm run gen\` from the routes. */
${imports.join('\n')}

export const answers = {
${rows.join('\n')}
} as const;
`);
}
