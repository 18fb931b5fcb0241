/** The REST API of a broker in this process, over HTTPS, with clusters that have joined. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { silentLog } from '#shared/ports/log.ts';
import { type Broker, startBroker } from './broker.ts';
import { send } from './scripted-agent.ts';
import { callersOf } from './testing/broker-callers.ts';

let dir = '';
let broker: Broker;
const { rest, joined } = callersOf(() => broker);

beforeAll(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'isthmus-rest-'));
  broker = await startBroker({ dataDir: dir, listen: '127.0.0.1:0', log: silentLog, version: '0.1.0' });
  for (const cluster of ['rome', 'milan', 'ulm', 'bonn', 'kiel', 'suhl', 'trier']) await joined(cluster);
});
afterAll(async () => {
  await broker.close();
  await rm(dir, { recursive: true, force: true });
});

describe('the REST API', () => {
  test('answers mistakes with a problem document', async () => {
    const { status, headers, body } = await rest('POST', '/v1/peerings', { consumer: 'No!', provider: 'milan' });
    expect(status).toBe(422);
    expect(headers['content-type']).toBe('application/problem+json');
    expect(body).toMatchObject({
      type: 'urn:isthmus:error:invalid_input',
      status: 422,
      code: 'invalid_input',
      requestId: headers['x-request-id'],
      errors: [{ field: 'consumer', value: 'No!' }],
    });
  });

  test.each([
    { what: 'no JSON', body: '{"consumer"', status: 400, code: 'malformed_request' },
    { what: 'the same cluster twice', body: { consumer: 'ulm', provider: 'ulm' }, status: 409, code: 'peer_self' },
    { what: 'an unknown cluster', body: { consumer: 'ulm', provider: 'oz' }, status: 404, code: 'cluster_unknown' },
    {
      what: 'resources that are no quantities',
      body: { consumer: 'ulm', provider: 'bonn', resources: { cpu: 'much' } },
      status: 422,
      code: 'invalid_input',
    },
    {
      what: 'more than the provider allows',
      body: { consumer: 'ulm', provider: 'bonn', resources: { cpu: '30' } },
      status: 422,
      code: 'policy_refused',
    },
  ])('refuses a peering with $what', async ({ body, status, code }) => {
    const answer = await rest('POST', '/v1/peerings', body);
    expect([answer.status, answer.body.code]).toEqual([status, code]);
    expect((await rest('GET', '/v1/peerings?consumer=ulm&provider=bonn')).body.items).toEqual([]);
  });

  test('gives the same answer to a repeated POST, and refuses the key for another request', async () => {
    const key = { 'idempotency-key': 'k-1' };
    const asked = { consumer: 'ulm', provider: 'kiel', resources: { cpu: '1' } };
    const first = await rest('POST', '/v1/peerings', asked, key);
    const second = await rest('POST', '/v1/peerings', asked, key);
    expect([second.status, second.body.id]).toEqual([first.status, first.body.id]);
    expect(second.headers['idempotency-replayed']).toBe('true');
    const other = await rest('POST', '/v1/peerings', { ...asked, provider: 'bonn' }, key);
    expect(other.body.code).toBe('idempotency_mismatch');
  });

  test('changes conditionally: a stale If-Match is refused', async () => {
    const { body, headers } = await rest('POST', '/v1/peerings', { consumer: 'kiel', provider: 'ulm' });
    expect(headers.etag).toBe(`"${body.version}"`);
    const stale = await rest('DELETE', `/v1/peerings/${body.id}`, undefined, { 'if-match': '"99"' });
    expect([stale.status, stale.body.code]).toEqual([412, 'precondition_failed']);
    const current = (await rest('GET', `/v1/peerings/${body.id}`)).headers.etag as string;
    expect((await rest('DELETE', `/v1/peerings/${body.id}`, undefined, { 'if-match': current })).status).toBe(202);
  });

  test('answers 304 when a wait ends without news', async () => {
    const { body } = await rest('POST', '/v1/peerings', { consumer: 'bonn', provider: 'kiel' });
    const known = (await rest('GET', `/v1/peerings/${body.id}`)).headers.etag as string;
    const answer = await rest('GET', `/v1/peerings/${body.id}?wait=0.2`, undefined, { 'if-none-match': known });
    expect([answer.status, answer.body]).toEqual([304, undefined]);
  });

  test('pages lists by a cursor', async () => {
    const seen: string[] = [];
    let cursor = '';
    do {
      const { body } = await rest('GET', `/v1/clusters?limit=2${cursor && `&cursor=${encodeURIComponent(cursor)}`}`);
      expect(body.items.length).toBeLessThanOrEqual(2);
      seen.push(...body.items.map(({ name }: { name: string }) => name));
      cursor = body.cursor ?? '';
    } while (cursor !== '');
    expect(seen).toEqual(expect.arrayContaining(['rome', 'milan', 'ulm']));
    expect(new Set(seen).size).toBe(seen.length);
  });

  test('names principal and action in the audit log', async () => {
    await rest('POST', '/v1/join-tokens', { cluster: 'lodi' });
    const { body } = await rest('GET', '/v1/audit?subject=cluster/lodi');
    expect(body.items[0]).toMatchObject({ action: 'cluster.create-join-token', from: '127.0.0.1' });
    expect(body.items[0].principal).toMatch(/^api-key\/ak_/);
  });

  test('keeps keys to their role and refuses them once revoked', async () => {
    const made = await rest('POST', '/v1/keys', { name: 'ci', role: 'viewer' });
    const viewer = { authorization: `Bearer ${made.body.secret}` };
    expect((await rest('GET', '/v1/clusters', undefined, viewer)).status).toBe(200);
    const refused = await rest('POST', '/v1/join-tokens', { cluster: 'lodi' }, viewer);
    expect([refused.status, refused.body.code]).toEqual([403, 'forbidden']);
    await rest('DELETE', `/v1/keys/${made.body.key.id}`);
    expect((await rest('GET', '/v1/clusters', undefined, viewer)).status).toBe(401);
  });

  test('refuses a request without a key, and one with a wrong one, in the same words', async () => {
    const wrong = await rest('GET', '/v1/clusters', undefined, { authorization: 'Bearer isk_default_x_y' });
    expect([wrong.status, wrong.body.code]).toEqual([401, 'unauthenticated']);
    expect((await rest('GET', '/v1/clusters', undefined, { authorization: '' })).status).toBe(401);
  });

  test('serves its own description', async () => {
    const { body } = await send({ method: 'GET', url: `${broker.url}/v1/openapi.json`, ca: broker.caPem });
    expect(body.openapi).toBe('3.1.0');
    expect(Object.keys(body.paths)).toContain('/v1/peerings/{peering}');
  });

  test('names what there is instead of an unknown path or method', async () => {
    expect((await rest('GET', '/v2/x')).body.detail).toMatch(/openapi/);
    expect((await rest('PATCH', '/v1/clusters')).body.detail).toMatch(/this path has GET/);
  });
});

describe('two tenants', () => {
  test('see nothing of each other', async () => {
    const peering = await rest('POST', '/v1/peerings', { consumer: 'suhl', provider: 'trier' });
    const { secret } = (await broker.control.tenants.bootstrap('stranger', { from: 'local', requestId: 'test' })) ?? {};
    const stranger = { authorization: `Bearer ${secret}` };
    for (const target of ['/v1/clusters/suhl', `/v1/peerings/${peering.body.id}`]) {
      const answer = await rest('GET', target, undefined, stranger);
      expect([target, answer.status, answer.body.code]).toEqual([target, 404, 'not_found']);
      expect((await rest('DELETE', target, undefined, stranger)).status).toBe(404);
    }
    expect((await rest('GET', '/v1/clusters', undefined, stranger)).body.items).toEqual([]);
    const other = await rest('POST', '/v1/peerings', { consumer: 'suhl', provider: 'trier' }, stranger);
    expect(other.body.code).toBe('cluster_unknown');
  });
});
