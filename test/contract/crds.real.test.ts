import https from 'node:https';
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { apiVersionOf, type KubeResource, keyOf } from '#shared/domain/kube-object.ts';
import { allKinds } from '#shared/schema/all-kinds.ts';
import { crdName, customResourceDefinitions } from '#shared/schema/crd.ts';
import type { KindDefinition } from '#shared/schema/definition/kind.ts';
import { tenants } from '#shared/schema/liqo/tenant.ts';
import { goldenObjects } from '#test/golden/objects.ts';
import { casesOf } from '#test/harness/cases.ts';
import { startApiServer, type TestApiServer } from '#test/harness/kube-apiserver.ts';
import { type Access, callApi } from '#test/testbed/api-ready.ts';
import { type BadChange, badChanges } from './bad-changes.ts';
import { type BadObject, badObjects } from './bad-objects.ts';
import {
  constantDamages,
  type Damage,
  damaged,
  oneOfEachSchema,
  type Place,
  placesOfExamples,
  randomDamage,
  typicalDamages,
} from './damage.ts';

type Tree = Record<string, unknown>;
interface Answer {
  readonly status: number;
  readonly object: KubeResource<Tree, Tree>;
  readonly message: string;
}

let server: TestApiServer;
let admin: Access;
/** Thousands of requests: without the handshakes each takes half as long. */
const agent = new https.Agent({ keepAlive: true });

async function call(target: string, method = 'GET', body?: unknown): Promise<Answer> {
  const answer = await callApi(admin, target, method, body);
  const object = JSON.parse(answer.body) as Answer['object'] & { message?: string };
  return { status: answer.status, object, message: object.message ?? '' };
}

const collection = (kind: KindDefinition, namespace = 'default'): string =>
  `/apis/${apiVersionOf(kind)}/${kind.namespaced ? `namespaces/${namespace}/` : ''}${kind.plural}`;

const itemPath = (kind: KindDefinition, object: { metadata: { name: string; namespace?: string } }): string =>
  `${collection(kind, object.metadata.namespace)}/${object.metadata.name}`;

beforeAll(async () => {
  server = await startApiServer();
  admin = { url: server.url, ca: server.ca, cert: server.adminCert, key: server.adminKey, agent };
  for (const definition of customResourceDefinitions()) {
    const { status, message } = await call(
      '/apis/apiextensions.k8s.io/v1/customresourcedefinitions',
      'POST',
      definition,
    );
    expect(status, `${definition.metadata.name}: ${message}`).toBe(201);
  }
  // Established says that the names are ours; the handlers follow a moment later.
  for (const kind of allKinds) {
    await vi.waitFor(async () => expect((await call(collection(kind))).status).toBe(200), {
      timeout: 20_000,
      interval: 50,
    });
  }
  const namespaces = new Set([...goldenObjects().map(({ object }) => object.metadata.namespace), 'refused', 'changes']);
  for (const name of namespaces) {
    if (name !== undefined && name !== 'default') {
      await call('/api/v1/namespaces', 'POST', { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
    }
  }
}, 900_000);
afterAll(async () => {
  agent.destroy();
  await server?.stop();
});

describe('a real API server', () => {
  test.each(allKinds.map((kind) => [kind.kind, kind] as const))(
    'accepts the definition of %s as structural and establishes it',
    async (_, kind) => {
      const { object } = await call(`/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${crdName(kind)}`);
      const conditions = (object.status?.conditions ?? []) as { type: string; status: string; message: string }[];
      expect(conditions.filter((c) => c.status === 'True').map((c) => c.type)).toEqual(
        expect.arrayContaining(['NamesAccepted', 'Established']),
      );
      expect(conditions.find((c) => c.type === 'NonStructuralSchema' && c.status === 'True')?.message).toBeUndefined();
    },
  );

  test('lists short names, categories, scope and status subresources in discovery', async () => {
    for (const kind of allKinds) {
      const { object } = await call(`/apis/${apiVersionOf(kind)}`);
      const resources = (object as unknown as { resources: Tree[] }).resources;
      const { singular, shortNames, categories, namespaced } = kind;
      expect(resources.find((r) => r.name === kind.plural)).toMatchObject({
        kind: kind.kind,
        singularName: singular,
        namespaced,
        categories,
        ...(shortNames.length === 0 ? {} : { shortNames }),
      });
      const hasStatus = resources.some((r) => r.name === `${kind.plural}/status`);
      expect(hasStatus, kind.kind).toBe(kind.status !== undefined);
    }
  });

  test('accepts base64 of any bytes, whichever of its 64 characters it has', async () => {
    const every = Buffer.from(Array.from({ length: 256 }, (_, i) => (i * 251) % 256)).toString('base64');
    const spec = { clusterID: 'rome', signature: every, csr: '+/+/' };
    const object = {
      apiVersion: apiVersionOf(tenants),
      kind: 'Tenant',
      metadata: { name: 'base64', namespace: 'default' },
      spec,
    };
    const created = await call(collection(tenants, 'default'), 'POST', object);
    expect(created.message ?? '').toBe('');
    expect(created.object.spec).toMatchObject(spec);
  });

  test.each(goldenObjects().map((golden) => [keyOf(golden.object), golden.kind.kind, golden] as const))(
    'accepts the example %s (%s), keeps every field and fills in the defaults of the zod schema',
    async (_, __, { kind, object }) => {
      const created = await call(collection(kind, object.metadata.namespace), 'POST', object);
      expect(created.status, created.message).toBe(201);
      expect(created.object.spec).toEqual(kind.spec.parse(withoutNulls(object.spec ?? {})));
      if (!kind.status || !object.status) return;
      const target = `${itemPath(kind, object)}/status`;
      const reported = await call(target, 'PUT', { ...created.object, status: object.status });
      expect(reported.status, reported.message).toBe(200);
      expect(reported.object.status).toEqual(kind.status.parse(withoutNulls(object.status)));
    },
  );

  test.each(badObjects.map((bad) => [bad.why, bad] as const))('refuses %s', async (_, bad: BadObject) => {
    const object = { apiVersion: apiVersionOf(bad.kind), kind: bad.kind.kind, metadata: bad.metadata, spec: bad.spec };
    const answer = await call(collection(bad.kind, bad.metadata.namespace), 'POST', object);
    expect(answer.status, JSON.stringify(answer.object)).toBe(422);
    for (const text of bad.says) expect(answer.message).toContain(text);
    expect((await call(itemPath(bad.kind, object))).status).toBe(404);
  });

  test.each(badChanges.map((bad) => [bad.why, bad] as const))(
    'refuses %s, and the object stays as it was',
    async (_, bad: BadChange) => {
      const object = {
        apiVersion: apiVersionOf(bad.kind),
        kind: bad.kind.kind,
        metadata: bad.metadata,
        spec: bad.from,
      };
      const target = itemPath(bad.kind, object);
      const created = await call(collection(bad.kind, bad.metadata.namespace), 'POST', object);
      expect(created.status, created.message).toBe(201);
      const answer = bad.toStatus
        ? await call(`${target}/status`, 'PUT', { ...created.object, status: bad.toStatus })
        : await call(target, 'PUT', { ...created.object, spec: bad.to });
      expect(answer.status, JSON.stringify(answer.object)).toBe(422);
      for (const text of bad.says) expect(answer.message).toContain(text);
      expect((await call(target)).object).toEqual(created.object);
      await call(target, 'DELETE');
    },
  );

  test('agrees with the zod schema about every node of every schema, removed and with a value of each type', async () => {
    const places = placesOfExamples();
    const damages = casesOf(constantDamages, typicalDamages);
    const cases = casesOf(places, oneOfEachSchema(places)).flatMap((place) =>
      damages.map((damage) => ({ place, damage })),
    );
    expect(cases.length).toBeGreaterThan(3000);
    const disagreements: string[] = [];
    const left = cases.values();
    const lane = async (): Promise<void> => {
      for (const { place, damage } of left) disagreements.push(...(await disagreement(place, damage)));
    };
    await Promise.all(Array.from({ length: 8 }, lane));
    expect(disagreements).toEqual([]);
  }, 600_000);

  test('agrees with the zod schema about every example with random text or a random number in one place', async () => {
    const places = placesOfExamples();
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...places), randomDamage, async (place, damage) => {
        expect(await disagreement(place, damage)).toEqual([]);
      }),
      { numRuns: 100 },
    );
  }, 600_000);

  test('leaves status alone when the spec is written, and the spec when the status is', async () => {
    const kind = allKinds.find((k) => k.kind === 'Tenant')!;
    const object = {
      apiVersion: apiVersionOf(kind),
      kind: kind.kind,
      metadata: { name: 'isolated', namespace: 'default' },
      spec: { clusterID: 'isolated' },
      status: { tenantNamespace: 'smuggled' },
    };
    const created = await call(collection(kind), 'POST', object);
    expect(created.object.status).toBeUndefined();
    const reported = await call(`${itemPath(kind, object)}/status`, 'PUT', {
      ...created.object,
      spec: { ...created.object.spec, tenantCondition: 'Drained' },
      status: { tenantNamespace: 'real' },
    });
    expect(reported.object.spec).toEqual(created.object.spec);
    expect(reported.object.status).toEqual({ tenantNamespace: 'real' });
  });

  test('prunes fields that no schema knows, but not inside pod specs', async () => {
    const kind = allKinds.find((k) => k.kind === 'ShadowPod')!;
    const containers = [{ name: 'web', image: 'x', fieldOfTheFuture: { a: [1] } }];
    const { object } = await call(collection(kind), 'POST', {
      apiVersion: apiVersionOf(kind),
      kind: kind.kind,
      metadata: { name: 'pruned', namespace: 'default' },
      spec: { pod: { containers, alsoNew: true }, unknown: 1 },
    });
    expect(object.spec).toEqual({ pod: { containers, alsoNew: true } });
  });
});

/** The API server drops `null` where nothing allows it. Inside opaque objects it stays. */
function withoutNulls(tree: Tree): Tree {
  return Object.fromEntries(
    Object.entries(tree)
      .filter(([, value]) => value !== null)
      .map(([key, value]) => [key, key === 'template' ? value : pruned(value)]),
  );
}

const pruned = (value: unknown): unknown =>
  Array.isArray(value)
    ? value.map(pruned)
    : typeof value === 'object' && value !== null
      ? withoutNulls(value as Tree)
      : value;

/** Whether both accept the spec, and what it is then, with its defaults. Empty: they agree. */
async function disagreement(place: Place, damage: Damage): Promise<readonly string[]> {
  const { kind, object } = place;
  const spec = damaged(place, damage);
  const metadata = {
    name: kind.kind === 'NamespaceOffloading' ? 'offloading' : 'damaged',
    ...(kind.namespaced ? { namespace: 'refused' } : {}),
  };
  const target = `${collection(kind, 'refused')}?dryRun=All`;
  const answer = await call(target, 'POST', { apiVersion: object.apiVersion, kind: object.kind, metadata, spec });
  const parsed = kind.spec.safeParse(pruned(spec));
  const accepted = answer.status === 201;
  if (accepted === parsed.success && (!accepted || isDeepStrictEqual(answer.object.spec, parsed.data))) return [];
  const words = `API server: ${answer.message || JSON.stringify(answer.object.spec)}; zod: ${parsed.error?.message ?? JSON.stringify(parsed.data)}`;
  return [`${kind.kind} with ${JSON.stringify(damage)} at ${place.path.join('.')}: ${words}`];
}
