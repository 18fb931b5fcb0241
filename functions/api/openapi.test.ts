import { expect, test } from 'vitest';
import { httpFunctions } from '#functions/routes.ts';
import { openApiDocument } from './openapi.ts';

interface Operation {
  readonly responses: Record<string, unknown>;
  readonly security?: unknown[];
}
const document = openApiDocument() as { paths: Record<string, Record<string, Operation>>; openapi: string };

test('the document that is served is the one that the routes generate', async () => {
  await expect(`${JSON.stringify(document, null, 2)}\n`).toMatchFileSnapshot('./openapi.json');
});

test('every function is in the document, with its answers and its problem', () => {
  for (const { route } of httpFunctions) {
    const operation = document.paths[route.path]?.[route.method.toLowerCase()];
    expect(Object.keys(operation?.responses ?? {}).sort()).toEqual([...Object.keys(route.answers), 'default'].sort());
  }
});

test('only health and the document itself are open to everybody', () => {
  const open = httpFunctions.filter(({ route }) => route.auth === 'none').map(({ route }) => route.path);
  expect(open.sort()).toEqual(['/v1/health', '/v1/openapi.json']);
});

test('no two functions share a route', () => {
  const keys = httpFunctions.map(({ route }) => `${route.method} ${route.path}`);
  expect(new Set(keys).size).toBe(keys.length);
});
