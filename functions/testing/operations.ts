/** The operations of the API document, as tests perform them. */
import document from '#functions/api/openapi.json' with { type: 'json' };
import type { Schema } from './from-schema.ts';

interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly required?: boolean;
  readonly schema: Schema;
}
export interface Operation {
  readonly id: string;
  readonly method: string;
  readonly path: string;
  readonly agent: boolean;
  readonly parameters: readonly Parameter[];
  readonly body?: Schema;
}

export const operations: readonly Operation[] = Object.entries(
  document.paths as unknown as Record<string, Record<string, Record<string, unknown>>>,
).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, described]) => {
    const content = described.requestBody as { content: { 'application/json': { schema: Schema } } } | undefined;
    return {
      id: String(described.operationId),
      method: method.toUpperCase(),
      path,
      agent: JSON.stringify(described.security).includes('agentSignature'),
      parameters: (described.parameters ?? []) as Parameter[],
      ...(content && { body: content.content['application/json'].schema }),
    };
  }),
);

const components = (document.components as unknown as { schemas: Record<string, Schema> }).schemas;
/** Of a `$ref` of the API document. */
export const schemaOf = (ref: string): Schema => components[ref.slice(ref.lastIndexOf('/') + 1)] ?? {};
