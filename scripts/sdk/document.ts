/** The OpenAPI document as generators of clients need it. */

interface Operation {
  readonly tags?: readonly string[];
  readonly parameters?: readonly object[];
  readonly responses: Readonly<Record<string, unknown>>;
}
export interface Document {
  readonly info: { readonly title: string; readonly version: string };
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly webhooks?: unknown;
}

const condition = (name: 'If-Match' | 'If-None-Match', description: string): object => ({
  name,
  in: 'header',
  required: false,
  description,
  schema: { type: 'string' },
});
const ifMatch = condition('If-Match', 'The ETag of the object as it was read. Another version is answered 412.');
const ifNoneMatch = condition('If-None-Match', 'The ETag that is known. The same version is answered 304.');

/**
 * Conditions become parameters: the document leaves them out, since generators of test requests make up versions. Agents sign each request, which is
 * another client; webhooks are requests of the broker.
 */
export function sdkDocument({ webhooks: _, ...document }: Document): Document {
  const paths = Object.entries(document.paths).flatMap(([at, methods]) => {
    const kept = Object.entries(methods).filter(([, { tags = [] }]) => !tags.includes('agent protocol'));
    if (kept.length === 0) return [];
    const operations = kept.map(([method, operation]) => {
      const parameters = [
        ...(operation.parameters ?? []),
        ...('x-if-match' in operation ? [ifMatch] : []),
        ...('304' in operation.responses ? [ifNoneMatch] : []),
      ];
      return [method, parameters.length === 0 ? operation : { ...operation, parameters }];
    });
    return [[at, Object.fromEntries(operations)]];
  });
  return { ...document, paths: Object.fromEntries(paths) };
}
