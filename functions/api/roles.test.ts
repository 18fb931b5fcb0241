import { beforeAll, describe, expect, test } from 'vitest';
import { type ApiFixture, createApiFixture } from '#functions/testing/api-fixture.ts';
import document from './openapi.json' with { type: 'json' };

const roles = ['viewer', 'operator', 'admin'] as const;
type Role = (typeof roles)[number];

interface Operation {
  readonly 'x-required-role'?: Role | 'deployment-operator';
  readonly security: readonly Record<string, unknown>[];
}
const operations = Object.entries(document.paths as unknown as Record<string, Record<string, Operation>>).flatMap(
  ([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      method: method.toUpperCase(),
      path,
      required: operation['x-required-role'],
      schemes: operation.security.flatMap((entry) => Object.keys(entry)),
    })),
);
const concrete = (path: string): string => path.replaceAll(/\{\w+\}/g, 'xx_00000000000000000000000000');
const bodyFor = (method: string): object =>
  method === 'POST' || method === 'PATCH' || method === 'PUT' ? { body: {} } : {};

let clusters: ApiFixture;
const keys: Partial<Record<Role | 'deployment-operator', string>> = {};
beforeAll(async () => {
  clusters = await createApiFixture();
  const admin = await clusters.tenant('acme');
  for (const role of roles) keys[role] = await clusters.keyOf(admin, role);
  keys['deployment-operator'] = clusters.operatorKey;
});

test('every route for members or operators says which role it needs, and no other route does', () => {
  for (const { path, schemes, required } of operations) {
    const forPeople = schemes.some((scheme) => scheme === 'apiKey' || scheme === 'operatorKey');
    expect(required !== undefined, path).toBe(forPeople);
    expect(required === 'deployment-operator', path).toBe(schemes.includes('operatorKey'));
  }
});

describe.each(operations.filter(({ required }) => required !== undefined))(
  '$method $path',
  ({ method, path, required }) => {
    test.each([...roles, 'deployment-operator'] as const)('as %s', async (role) => {
      const { status, body } = await clusters.call({
        method,
        path: concrete(path),
        key: keys[role],
        ...bodyFor(method),
      });
      const outcome = body?.code as string | undefined;
      if (required === 'deployment-operator') {
        if (role === 'deployment-operator') expect([401, 403]).not.toContain(status);
        // A name in the path is not found, in every tenant.
        else expect([status, outcome]).toEqual(path.includes('{tenant}') ? [404, 'not_found'] : [403, 'forbidden']);
        return;
      }
      const allowed = role !== 'deployment-operator' && roles.indexOf(role) >= roles.indexOf(required ?? 'admin');
      if (allowed) expect([401, 403]).not.toContain(status);
      else expect([status, outcome]).toEqual([403, 'forbidden']);
    });

    test.each([undefined, 'isk_acme_x_y', 'iso_x_y', 'a.b.c', 'x'.repeat(10_000)])(
      'with a key that opens nothing (%#)',
      async (key) => {
        const { status, body, headers } = await clusters.call({
          method,
          path: concrete(path),
          key,
          ...bodyFor(method),
        });
        expect([status, body.code, headers['www-authenticate']]).toEqual([401, 'unauthenticated', 'Bearer']);
      },
    );
  },
);

describe.each(operations.filter(({ schemes }) => schemes.includes('agentSignature')))(
  '$method $path',
  ({ method, path }) => {
    test.each([...roles, 'deployment-operator'] as const)('is not for %s', async (role) => {
      const { status } = await clusters.call({ method, path: concrete(path), key: keys[role], ...bodyFor(method) });
      expect([401, 422]).toContain(status);
    });
  },
);
