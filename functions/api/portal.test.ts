/**
 * A portal that knows the OpenAPI document and nothing else: it finds operations by their ids, fills in what the document calls required, and
 * holds every answer against the schema that the document gives for its status.
 */
import { beforeEach, expect, test } from 'vitest';
import * as z from 'zod';
import { newAgentKeys, signRequest } from '#control/testing/agent-keys.ts';
import { openFacts, SimulatedCluster } from '#control/testing/simulated-cluster.ts';
import { type ApiAnswer, type ApiFixture, apiUrl, createApiFixture } from '#functions/testing/api-fixture.ts';

interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly required?: boolean;
  readonly schema: object;
}
interface Operation {
  readonly method: string;
  readonly path: string;
  readonly operationId: string;
  readonly parameters?: readonly Parameter[];
  readonly 'x-if-match'?: string;
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: object }>> };
  readonly responses: Readonly<
    Record<
      string,
      { readonly headers?: object; readonly content?: Readonly<Record<string, { readonly schema: object }>> }
    >
  >;
}
interface Given {
  readonly path?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string | number>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

let fixture: ApiFixture;
let definitions: Record<string, unknown>;
let operations: ReadonlyMap<string, Operation>;
beforeEach(async () => {
  fixture = await createApiFixture();
  // As a portal gets it: from the broker, without a key.
  const { body } = await fixture.call({ method: 'GET', path: '/v1/openapi.json' });
  definitions = body.components.schemas;
  operations = new Map(
    Object.entries(body.paths as Record<string, Record<string, Operation>>).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, one]) => [one.operationId, { ...one, method: method.toUpperCase(), path }]),
    ),
  );
});

/** References of the document, as the reader of JSON Schema takes them. It knows no `not`, which one schema has. */
function schemaOf(schema: object): z.ZodType {
  const text = JSON.stringify({ ...schema, $defs: definitions }, (name, value) => (name === 'not' ? undefined : value));
  return z.fromJSONSchema(JSON.parse(text.replaceAll('#/components/schemas/', '#/$defs/')));
}

async function ask(key: string, id: string, { path = {}, query = {}, headers = {}, body }: Given = {}) {
  const operation = operations.get(id);
  if (!operation) throw new Error(`the document has no operation ${id}`);
  const { parameters = [], requestBody, responses } = operation;
  const given = { path, query, header: headers };
  for (const { name, in: where, required, schema } of parameters) {
    const value = given[where][name];
    if (required && value === undefined) throw new Error(`${id} needs ${name}`);
    if (value !== undefined) schemaOf(schema).parse(value);
  }
  for (const [where, values] of Object.entries(given)) {
    const undeclared = Object.keys(values).filter(
      (name) =>
        !(name === 'If-Match' && operation['x-if-match']) && !parameters.some((p) => p.in === where && p.name === name),
    );
    expect(undeclared, `what ${id} does not declare in its ${where}`).toEqual([]);
  }
  if (requestBody) schemaOf(requestBody.content['application/json']!.schema).parse(body);
  const filled = Object.entries(path).reduce(
    (at, [name, value]) => at.replace(`{${name}}`, encodeURIComponent(value)),
    operation.path,
  );
  const search = new URLSearchParams(
    Object.entries(query).map(([name, value]): [string, string] => [name, String(value)]),
  ).toString();
  const answer = await fixture.call({
    method: operation.method,
    path: search === '' ? filled : `${filled}?${search}`,
    key,
    headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])),
    ...(body !== undefined && { body }),
  });
  const described = responses[answer.status] ?? responses.default;
  const content = described?.content?.[answer.status < 400 ? 'application/json' : 'application/problem+json'];
  if (content) schemaOf(content.schema).parse(answer.body);
  if (answer.status < 400) expect(Object.keys(responses), id).toContain(String(answer.status));
  return answer;
}

/** The address of a resource, back to the operation that reads it. */
function follow(key: string, { headers }: ApiAnswer): Promise<ApiAnswer> {
  return fixture.call({ method: 'GET', path: headers.location ?? 'no location', key });
}

const keys = newAgentKeys();
/** Its agent: the one party that is no portal. */
async function join(tenant: string, clusterId: string, token: string): Promise<SimulatedCluster> {
  const { secret } = JSON.parse(Buffer.from(token.slice('isthmus1.'.length), 'base64url').toString());
  const body = { clusterId, token: secret, publicKey: keys.publicKey, facts: openFacts };
  const path = '/v1/agent/enroll';
  const now = fixture.clock.now();
  const request = { keys, tenant, clusterId, audience: apiUrl, now, path, body: JSON.stringify(body) };
  await fixture.control.clusters.enroll(body, await signRequest(request));
  return new SimulatedCluster(clusterId, tenant, () => fixture.control);
}

test('a portal makes a tenant and a key, peers two clusters, follows them, pages, hears of it and has it sent', async () => {
  const made = await ask(fixture.operatorKey, 'createTenant', { body: { name: 'acme' } });
  const admin: string = made.body.firstKey.secret;
  const issued = await ask(admin, 'createKey', { body: { name: 'portal', role: 'admin' } });
  expect(issued.status).toBe(201);
  const key: string = issued.body.secret;

  const clusters = new Map<string, SimulatedCluster>();
  for (const cluster of ['milan', 'rome', 'turin']) {
    const { body } = await ask(key, 'createJoinToken', { body: { cluster } });
    clusters.set(cluster, await join('acme', cluster, body.token));
  }

  // Page by page.
  const names: string[] = [];
  let cursor: string | undefined;
  do {
    const query = { limit: 1, ...(cursor !== undefined && { cursor }) };
    const { body } = await ask(key, 'listClusters', { query });
    names.push(...body.items.map(({ name }: { name: string }) => name));
    cursor = body.cursor;
  } while (cursor !== undefined);
  expect(names).toEqual(['milan', 'rome', 'turin']);

  // Labels: found again, and changed with optimistic concurrency.
  const { headers: read } = await ask(key, 'getCluster', { path: { cluster: 'rome' } });
  const labelled = {
    path: { cluster: 'rome' },
    body: { labels: { tier: 'gold' } },
    headers: { 'If-Match': read.etag! },
  };
  expect((await ask(key, 'changeCluster', labelled)).status).toBe(200);
  expect((await ask(key, 'changeCluster', { ...labelled, body: { labels: {} } })).body.code).toBe(
    'precondition_failed',
  );
  const gold = await ask(key, 'listClusters', { query: { labels: 'tier=gold' } });
  expect(gold.body.items.map(({ name }: { name: string }) => name)).toEqual(['rome']);

  // Asked for twice with one Idempotency-Key: one peering, one answer.
  const wanted = {
    body: { consumer: 'rome', provider: 'milan', resources: { cpu: '2' }, labels: { stage: 'prod' } },
    headers: { 'Idempotency-Key': 'portal-1' },
  };
  const accepted = await ask(key, 'createPeering', wanted);
  const repeated = await ask(key, 'createPeering', wanted);
  expect([accepted.status, repeated.status, repeated.body.id]).toEqual([202, 202, accepted.body.id]);

  // Labels of its own, by the version that was read, and found by them.
  const { headers: asMade } = await ask(key, 'getPeering', { path: { peering: accepted.body.id } });
  const team = {
    path: { peering: accepted.body.id },
    body: { labels: { team: 'shop' } },
    headers: { 'If-Match': asMade.etag! },
  };
  const named = await ask(key, 'changePeering', team);
  expect([named.status, named.body.labels]).toEqual([200, { team: 'shop' }]);
  expect((await ask(key, 'changePeering', team)).status).toBe(412);
  const found = async (labels: string, pair: object = {}) =>
    (await ask(key, 'listPeerings', { query: { labels, ...pair } })).body.items.map(({ id }: { id: string }) => id);
  expect(await found('team=shop')).toEqual([accepted.body.id]);
  expect(await found('team=bank')).toEqual([]);
  expect(await found('team', { consumer: 'rome', provider: 'milan' })).toEqual([accepted.body.id]);
  expect(await found('stage', { consumer: 'rome', provider: 'milan' })).toEqual([]);

  // The resource to poll.
  let peering = accepted.body;
  for (let i = 0; peering.phase !== 'Ready' && i < 100; i += 1) {
    for (const cluster of clusters.values()) {
      await cluster.pull();
      cluster.work((id) => clusters.get(id));
      await cluster.report();
    }
    fixture.clock.advance(500);
    await fixture.control.peerings.sweep();
    peering = (await follow(key, accepted)).body;
  }
  expect(peering).toMatchObject({ id: accepted.body.id, phase: 'Ready' });
  schemaOf({ $ref: '#/components/schemas/Peering' }).parse(peering);

  // The feed goes on where it stopped, and says everything once.
  const heard: string[] = [];
  let after: string | undefined;
  for (;;) {
    const { body } = await ask(key, 'listEvents', {
      query: { limit: 3, ...(after !== undefined && { cursor: after }) },
    });
    if (body.items.length === 0) break;
    heard.push(...body.items.map(({ id }: { id: string }) => id));
    after = body.cursor;
  }
  expect(new Set(heard).size).toBe(heard.length);
  expect(heard.length).toBeGreaterThan(5);

  // Events that are sent.
  const hook = await ask(key, 'createWebhook', { body: { url: 'https://portal.example/hook', types: ['peering.*'] } });
  expect([hook.status, hook.body.secret]).toEqual([201, expect.stringMatching(/^whsec_/)]);
  const target = await ask(key, 'createEventTarget', {
    body: {
      arn: 'arn:aws:events:eu-central-1:123456789012:event-bus/portal',
      roleArn: 'arn:aws:iam::123456789012:role/isthmus-events-portal',
    },
  });
  expect([target.status, target.body.type, target.body.externalId]).toEqual([201, 'eventbridge', 'isthmus/acme']);

  // And its end, by the version that was read.
  const ended = await ask(key, 'deletePeering', { path: { peering: peering.id }, headers: { 'If-Match': '"1"' } });
  expect(ended.status).toBe(412);
  const etag = (await ask(key, 'getPeering', { path: { peering: peering.id } })).headers.etag!;
  const ending = await ask(key, 'deletePeering', { path: { peering: peering.id }, headers: { 'If-Match': etag } });
  expect([ending.status, ending.body.phase]).toEqual([202, 'Unpeering']);
});
