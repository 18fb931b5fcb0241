import { expect, test } from 'vitest';
import { openApiDocument } from '#functions/openapi.ts';
import { httpFunctions } from '#functions/routes.ts';
import { type Document, sdkDocument } from './document.ts';

const document = sdkDocument(openApiDocument() as unknown as Document);
const operations = Object.entries(document.paths).flatMap(([at, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ name: `${method.toUpperCase()} ${at}`, ...operation })),
);
const withHeader = (header: string): string[] =>
  operations
    .filter(({ parameters }) => JSON.stringify(parameters ?? []).includes(`"${header}"`))
    .map(({ name }) => name);

test('a client gets every operation but those of agents, and no webhook', () => {
  const routes = httpFunctions.filter(({ route }) => route.auth !== 'agent' && route.auth !== 'enroll');
  expect(operations.map(({ name }) => name).sort()).toEqual(
    routes.map(({ route }) => `${route.method} ${route.path}`).sort(),
  );
  expect(document).not.toHaveProperty('webhooks');
});

test('conditions are parameters where the broker heeds them', () => {
  const heeding = httpFunctions
    .filter(({ route }) => route.conditional)
    .map(({ route }) => `${route.method} ${route.path}`);
  expect(withHeader('If-Match').sort()).toEqual(heeding.sort());
  expect(withHeader('If-None-Match')).toEqual(['GET /v1/peerings/{peering}']);
});
