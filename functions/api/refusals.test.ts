/** Each operation answers the error codes that the OpenAPI document lists for it, and no others. */
import { describe, expect, test } from 'vitest';
import type { Store } from '#control/ports/store.ts';
import { openFacts } from '#control/testing/simulated-cluster.ts';
import { openApiDocument } from '#functions/openapi.ts';
import { refusalsOf } from '#functions/refusals.ts';
import { namedFunctions } from '#functions/routes.ts';
import { refusalCases } from '#functions/testing/refusal-cases.ts';
import { agentKeys, refusingBroker } from '#functions/testing/refusing-broker.ts';
import { AppError } from '#shared/errors/app-error.ts';

test.each(refusalCases)('$operation answers $code', async ({ code, meet, options }) => {
  const { body, status } = await meet(await refusingBroker(options));
  expect([body?.code, status]).toEqual([code, body?.status]);
});

test('every code that a route lists of its use case is answered by one of the requests above', () => {
  const listed = Object.entries(namedFunctions).flatMap(([operation, { route }]) =>
    (route.refusals ?? []).map((code) => `${operation} ${code}`),
  );
  expect(refusalCases.map(({ operation, code }) => `${operation} ${code}`).sort()).toEqual(listed.sort());
});

test('no route lists what follows from its other fields', () => {
  const twice = Object.entries(namedFunctions).flatMap(([operation, { route }]) => {
    const { refusals = [], ...rest } = route;
    return refusals.filter((code) => refusalsOf(rest).includes(code)).map((code) => `${operation} ${code}`);
  });
  expect(twice).toEqual([]);
});

test('the document has the codes of each operation, and each stands in its default answer', () => {
  interface Answers {
    readonly responses: Readonly<
      Record<string, { readonly content?: Record<string, { readonly schema: { readonly allOf: readonly unknown[] } }> }>
    >;
  }
  const { paths } = openApiDocument() as { readonly paths: Record<string, Record<string, Answers>> };
  for (const { route } of Object.values(namedFunctions)) {
    const { responses } = paths[route.path]?.[route.method.toLowerCase()] ?? { responses: {} };
    expect(responses.default?.content?.['application/problem+json']?.schema.allOf[1]).toEqual({
      type: 'object',
      properties: { code: { type: 'string', enum: refusalsOf(route) } },
    });
  }
});

describe('what any operation meets', () => {
  const troubles = ['store_busy', 'storage_unwritable', 'storage_full', 'version_conflict'] as const;

  /** Its tables fail from the moment on when there is trouble: a full disk and a conflict only where something is written. */
  function troubled() {
    const now: { trouble?: (typeof troubles)[number] } = {};
    const fail = (writes: boolean): void => {
      const { trouble } = now;
      if (trouble === undefined || (!writes && (trouble === 'storage_full' || trouble === 'version_conflict'))) return;
      throw new AppError(trouble, 'the store is in trouble');
    };
    const wrap = (store: Store): Store => ({
      ...store,
      get: async (...asked) => {
        fail(false);
        return store.get(...asked);
      },
      query: async (...asked) => {
        fail(false);
        return store.query(...asked);
      },
      transact: async (...asked) => {
        fail(true);
        return store.transact(...asked);
      },
    });
    return { now, wrap };
  }

  const pathOf = (template: string): string => template.replaceAll(/\{\w+\}/g, 'ab_1');

  test.each(troubles)('a store that answers %s is answered as that, where the document says so', async (trouble) => {
    const { now, wrap } = troubled();
    const b = await refusingBroker({ wrap });
    now.trouble = trouble;
    const met = new Set<string>();
    for (const [operation, { route }] of Object.entries(namedFunctions)) {
      const call = { method: route.method, path: pathOf(route.path), ...(route.body && { body: {} }) };
      const answer =
        route.auth === 'agent' || route.auth === 'enroll'
          ? await b.fixture.signed({ tenant: 'acme', cluster: 'rome', keys: agentKeys }, call)
          : await b.fixture.call({ ...call, key: route.auth === 'operator' ? b.keys.operator : b.keys.acme });
      if (answer.body?.code === trouble) met.add(operation);
      // The fixture itself fails for a code that the document does not list.
      if (trouble === 'store_busy' && route.auth === 'key')
        expect([operation, answer.body.code]).toEqual([operation, trouble]);
    }
    expect(met.size).toBeGreaterThan(0);
  });

  test('credentials that are none, of the wrong kind, too narrow, or of a suspended tenant', async () => {
    const b = await refusingBroker();
    const viewer = await b.fixture.keyOf(b.keys.acme, 'viewer');
    const narrow = (await b.post('acme', '/v1/keys', { name: 'narrow', role: 'admin', scopes: ['keys:read'] })).body
      .secret;
    const calls = Object.values(namedFunctions).flatMap(({ route }) =>
      [undefined, 'isk_none', b.keys.operator, viewer, narrow, b.keys.acme].map((key) => ({ route, key })),
    );
    const met = new Set<string>();
    for (const suspended of [false, true]) {
      if (suspended) await b.patch('operator', '/v1/tenants/acme', { state: 'suspended', reason: 'unpaid' });
      for (const { route, key } of calls) {
        // Nothing that these may do is to be done.
        if (route.method !== 'GET' && key === b.keys.operator && route.auth === 'operator') continue;
        const answer = await b.fixture.call({
          method: route.method,
          path: pathOf(route.path),
          key,
          ...(route.body && { body: [] }),
        });
        if (answer.body?.code !== undefined) met.add(`${route.auth} ${answer.body.code}`);
      }
    }
    expect([...met]).toEqual(
      expect.arrayContaining([
        'key unauthenticated',
        'key forbidden',
        'key tenant_suspended',
        'operator unauthenticated',
        'operator forbidden',
        'operator tenant_suspended',
        'agent unauthenticated',
      ]),
    );
    const facts = { clusterId: 'pisa', token: 'x', publicKey: agentKeys.publicKey, facts: openFacts };
    const unsigned = await b.fixture.call({ method: 'POST', path: '/v1/agent/enroll', body: facts });
    expect(unsigned.body.code).toBe('unauthenticated');
  });
});
