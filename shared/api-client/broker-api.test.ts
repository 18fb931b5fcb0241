import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import type * as z from 'zod';
import { answers } from './answers.ts';
import { type ApiRequest, type BrokerApi, createBrokerApi, type OperationName, operations } from './broker-api.ts';

interface Described {
  readonly operationId: string;
  readonly tags: readonly string[];
}
const document = JSON.parse(readFileSync('functions/api/openapi.json', 'utf8')) as {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Described>>>>;
};

function recording() {
  const sent: [ApiRequest, unknown][] = [];
  const api = createBrokerApi<string>(async (request, options) => {
    sent.push([request, options]);
    return 'answer';
  });
  return { api, sent };
}

test('the client has every operation of the document but those of agents', () => {
  const described = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([, { tags }]) => !tags.includes('agent protocol'))
      .map(([method, { operationId }]) => [operationId, [method.toUpperCase(), path]]),
  );
  expect(operations).toEqual(Object.fromEntries(described));
  expect(Object.keys(recording().api).sort()).toEqual(Object.keys(operations).sort());
});

test('a call is sent with its path filled in and everything else as it was given', async () => {
  const { api, sent } = recording();
  const path = { webhook: 'a/b c?', delivery: '..%' };
  expect(await api.getDelivery({ path, query: { wait: 3 } }, 'options')).toBe('answer');
  await api.listClusters();
  expect(sent).toEqual([
    [
      {
        operation: 'getDelivery',
        method: 'GET',
        path: '/v1/webhooks/a%2Fb%20c%3F/deliveries/..%25',
        query: { wait: 3 },
      },
      'options',
    ],
    [{ operation: 'listClusters', method: 'GET', path: '/v1/clusters' }, undefined],
  ]);
});

type Answer<Name extends OperationName> = Awaited<ReturnType<BrokerApi[Name]>>;
/** `true`, or the name of an operation whose checked answer is not what the client says it is. */
type Agrees<Name extends keyof typeof answers> = z.output<(typeof answers)[Name]> extends Answer<Name> ? true : Name;

test('what an answer is checked to be is what the client says it is, for all but what is no JSON or foreign', () => {
  const agree: { readonly [Name in keyof typeof answers]: Agrees<Name> } = Object.fromEntries(
    Object.keys(answers).map((name) => [name, true]),
  ) as Record<keyof typeof answers, true>;
  const unchecked = Object.keys(operations).filter((name) => !(name in agree));
  expect(unchecked.sort()).toEqual(['exportTenant', 'getOpenApi']);
});
