import { expect, test } from 'vitest';
import { bodyExamples } from '#functions/openapi-examples.ts';
import { httpFunctions, namedFunctions } from '#functions/routes.ts';
import { openApiDocument } from './openapi.ts';

interface Operation {
  readonly operationId: string;
  readonly responses: Record<string, unknown>;
  readonly security?: unknown[];
}
const document = openApiDocument() as { paths: Record<string, Record<string, Operation>>; openapi: string };

test('the document that is served is the one that the routes generate', async () => {
  await expect(`${JSON.stringify(document, null, 2)}\n`).toMatchFileSnapshot('./api/openapi.json');
});

test('every function is in the document, with its answers and its problem', () => {
  for (const { route } of httpFunctions) {
    const operation = document.paths[route.path]?.[route.method.toLowerCase()];
    expect(Object.keys(operation?.responses ?? {}).sort()).toEqual(
      [
        ...Object.keys(route.answers),
        ...(route.conditional ? ['412'] : []),
        ...(route.auth === 'key' || route.auth === 'agent' ? ['429'] : []),
        'default',
      ].sort(),
    );
  }
});

test('every route that heeds If-Match says so, and is one whose answers have an ETag', () => {
  const said = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, operation]) =>
      'x-if-match' in operation ? [`${method.toUpperCase()} ${path}`] : [],
    ),
  );
  const heeding = httpFunctions.flatMap(({ route }) => (route.conditional ? [`${route.method} ${route.path}`] : []));
  expect(said.sort()).toEqual(heeding.sort());
  expect(said).toContain('PATCH /v1/event-targets/{target}');
});

test('headers that clients steer by are said where they come: ETag, RateLimit, Retry-After, the tenant of a token', () => {
  const operation = document.paths['/v1/peerings/{peering}']?.patch as unknown as {
    readonly parameters: readonly { readonly name: string }[];
    readonly responses: Record<string, { readonly headers?: Record<string, { readonly $ref: string }> }>;
  };
  const rates = ['RateLimit-Limit', 'RateLimit-Remaining', 'RateLimit-Reset'];
  expect(operation.parameters.map(({ name }) => name)).toContain('isthmus-tenant');
  expect(Object.keys(operation.responses['200']?.headers ?? {}).sort()).toEqual(['ETag', ...rates]);
  expect(Object.keys(operation.responses['429']?.headers ?? {}).sort()).toEqual([...rates, 'Retry-After']);
  const { components } = document as unknown as { components: { headers: Record<string, unknown> } };
  const named = [...JSON.stringify(document).matchAll(/"\$ref":"#\/components\/headers\/([^"]+)"/g)].map(
    ([, name]) => name,
  );
  expect(new Set(named)).toEqual(new Set(Object.keys(components.headers)));
});

test('every reference in the document leads somewhere', () => {
  const { components } = document as unknown as { components: { schemas: Record<string, unknown> } };
  const names = [...JSON.stringify(document).matchAll(/"\$ref":"#\/components\/schemas\/([^"]+)"/g)].map(
    ([, name]) => name,
  );
  expect(names.length).toBeGreaterThan(10);
  expect(names.filter((name) => components.schemas[name ?? ''] === undefined)).toEqual([]);
});

test('every operation has a name of its own', () => {
  const ids = Object.values(document.paths).flatMap((path) =>
    Object.values(path).map(({ operationId }) => operationId),
  );
  expect(new Set(ids).size).toBe(httpFunctions.length);
});

test('only health and the document itself are open to everybody', () => {
  const open = httpFunctions.filter(({ route }) => route.auth === 'none').map(({ route }) => route.path);
  expect(open.sort()).toEqual(['/v1/health', '/v1/openapi.json']);
});

test('no two functions share a route', () => {
  const keys = httpFunctions.map(({ route }) => `${route.method} ${route.path}`);
  expect(new Set(keys).size).toBe(keys.length);
});

test('each body of a client has an example, which the operation takes', () => {
  const clients = Object.entries(namedFunctions).filter(
    ([, { route }]) => route.auth === 'key' || route.auth === 'operator',
  );
  const withBody = clients.filter(([, { route }]) => route.body !== undefined);
  expect(Object.keys(bodyExamples).sort()).toEqual(withBody.map(([name]) => name).sort());
  for (const [name, { route }] of withBody) {
    expect([name, route.body?.safeParse(bodyExamples[name]).error?.issues]).toEqual([name, undefined]);
  }
});

interface Linked {
  readonly links?: Record<string, { readonly operationId: string; readonly parameters: Record<string, string> }>;
  readonly content?: Record<string, { readonly schema: Resolved }>;
}
interface Resolved {
  readonly $ref?: string;
  readonly properties?: Record<string, unknown>;
}

test('what a POST made is linked to the operations of it, by a field of the answer', () => {
  const { components } = document as unknown as { components: { schemas: Record<string, Resolved> } };
  const linked = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.values((item.post?.responses ?? {}) as Record<string, Linked>).flatMap(({ links = {}, content = {} }) =>
      Object.values(links).map((link) => ({ path, link, schema: Object.values(content)[0]?.schema })),
    ),
  );
  expect(new Set(linked.map(({ path }) => path))).toEqual(
    new Set(['/v1/peerings', '/v1/requests', '/v1/members', '/v1/event-targets', '/v1/approval-rules', '/v1/issuers']),
  );
  for (const { path, link, schema } of linked) {
    const target = namedFunctions[link.operationId]?.route.path;
    const [[parameter = '', expression = ''] = []] = Object.entries(link.parameters);
    expect(target).toBe(`${path}/{${parameter}}`);
    const field = expression.replace('$response.body#/', '');
    const resolved = schema?.$ref ? components.schemas[schema.$ref.split('/').at(-1) ?? ''] : schema;
    expect(Object.keys(resolved?.properties ?? {})).toContain(field);
  }
});
