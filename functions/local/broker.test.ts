import { generateKeyPairSync } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Clock } from '#shared/ports/clock.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { type Broker, type BrokerOptions, startBroker } from './broker.ts';
import { type Answer, facts, frame, ScriptedAgent, send } from './scripted-agent.ts';

let dir = '';
let broker: Broker;
let offsetMs = 0;
/** Real time that a test may move forward. */
const clock: Clock = { now: () => Date.now() + offsetMs, sleep: systemClock.sleep };
const options = (over: Partial<BrokerOptions> = {}): BrokerOptions => ({
  dataDir: dir,
  listen: '127.0.0.1:0',
  log: silentLog,
  clock,
  version: '0.1.0',
  ...over,
});

beforeAll(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'isthmus-broker-'));
  broker = await startBroker(options());
});
afterAll(async () => {
  await broker.close();
  await rm(dir, { recursive: true, force: true });
});

const rest = (
  method: string,
  pathname: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Answer> =>
  send({
    method,
    url: broker.url + pathname,
    ca: broker.caPem,
    headers: {
      authorization: `Bearer ${broker.adminKey}`,
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });

async function tokenFor(cluster: string): Promise<string> {
  const answer = await rest('POST', '/v1/join-tokens', { cluster });
  expect(answer.status).toBe(201);
  return answer.body.token;
}

async function joined(cluster: string): Promise<ScriptedAgent> {
  const agent = new ScriptedAgent(await tokenFor(cluster), broker.caPem);
  expect((await agent.enroll()).status).toBe(200);
  return agent;
}

describe('an agent', () => {
  test('enrols with its join token, which carries the hash of the CA, and is listed', async () => {
    const agent = await joined('ulm');
    expect(agent.token).toMatchObject({ url: broker.url, tenant: 'default', clusterId: 'ulm', caHash: broker.caHash });
    const { body } = await rest('GET', '/v1/clusters/ulm');
    expect(body).toMatchObject({ name: 'ulm', state: 'joined', online: true, kubernetesVersion: 'v1.34.4' });
  });

  test('may repeat its enrolment when the answer got lost', async () => {
    const agent = await joined('bonn');
    expect((await agent.enroll()).status).toBe(200);
  });

  test('is refused with a token that was used by another key', async () => {
    const token = await tokenFor('kiel');
    expect((await new ScriptedAgent(token, broker.caPem).enroll()).status).toBe(200);
    const { status, body } = await new ScriptedAgent(token, broker.caPem).enroll();
    expect([status, body.code]).toEqual([401, 'join_token_used']);
  });

  test('is refused with a token that was never issued', async () => {
    const agent = new ScriptedAgent(await tokenFor('jena'), broker.caPem);
    const { body } = await agent.enroll({ token: 'x'.repeat(43) });
    expect(body.code).toBe('join_token_unknown');
    expect((await rest('GET', '/v1/clusters/jena')).status).toBe(404);
  });

  test('is refused with a token older than 15 minutes', async () => {
    const agent = new ScriptedAgent(await tokenFor('gera'), broker.caPem);
    offsetMs = 16 * 60_000;
    try {
      const now = Math.floor(clock.now() / 1_000);
      const { body } = await agent.enroll({}, { claims: { iat: now, exp: now + 60 } });
      expect(body.code).toBe('join_token_expired');
    } finally {
      offsetMs = 0;
    }
  });

  test('reports and reads what is desired', async () => {
    const agent = await joined('suhl');
    expect(await agent.call('POST', '/v1/agent/observed', { facts, sets: [] })).toMatchObject({ status: 200 });
    const { status, body } = await agent.call('GET', '/v1/agent/desired?after=0');
    expect([status, body.full, body.sets]).toEqual([200, true, []]);
  });

  test('whose report is malformed hears which field is wrong', async () => {
    const agent = await joined('trier');
    const { status, body } = await agent.call('POST', '/v1/agent/observed', { sets: [{ peering: 1 }] });
    expect([status, body.code]).toEqual([422, 'invalid_input']);
    expect(body.errors.map(({ field }: { field: string }) => field)).toContain('sets.0.peering');
  });
});

describe('a signed request is refused', () => {
  let agent: ScriptedAgent;
  beforeAll(async () => {
    agent = await joined('mainz');
  });
  const codeOf = async (answer: Promise<Answer>) => {
    const { status, body } = await answer;
    return [status, body?.code];
  };

  test('when it comes twice', async () => {
    expect((await agent.call('GET', '/v1/agent/desired')).status).toBe(200);
    const again = agent.call('GET', '/v1/agent/desired', undefined, { authorization: agent.lastAuthorization });
    expect(await codeOf(again)).toEqual([401, 'request_replayed']);
  });

  test.each([
    { why: 'signed by another key', tampering: { key: generateKeyPairSync('ed25519').privateKey } },
    { why: 'signed for another path', tampering: { claims: { htp: '/v1/agent/desired' } } },
    { why: 'signed for another method', tampering: { claims: { htm: 'GET' } } },
    { why: 'signed for another broker', tampering: { claims: { aud: 'https://other.example.com' } } },
    { why: 'whose body was changed on the way', tampering: { sentBody: { sets: [], asks: [] } } },
    { why: 'that lives longer than a minute', tampering: { claims: { exp: Math.floor(Date.now() / 1_000) + 3_600 } } },
    { why: 'of a cluster that signs as another', tampering: { claims: { iss: 'ulm' } } },
  ])('when it is one $why', async ({ tampering }) => {
    expect(await codeOf(agent.call('POST', '/v1/agent/observed', { sets: [] }, tampering))).toEqual([
      401,
      'signature_invalid',
    ]);
  });

  test('when it is too old', async () => {
    const iat = Math.floor(Date.now() / 1_000) - 300;
    const late = agent.call('GET', '/v1/agent/desired', undefined, { claims: { iat, exp: iat + 60 } });
    expect(await codeOf(late)).toEqual([401, 'request_expired']);
  });

  test('when it carries an API key instead of a signature', async () => {
    const answer = await rest('GET', '/v1/agent/desired');
    expect([answer.status, answer.body.code]).toEqual([401, 'unauthenticated']);
  });
});

describe('the doorbell', () => {
  test('opens for a signed request, rings when something is desired, and answers pings', async () => {
    const consumer = await joined('rome');
    await joined('milan');
    const socket = await consumer.connect();
    socket.send(JSON.stringify({ type: 'ping' }));
    expect(await frame(socket)).toMatchObject({ type: 'pong', revision: 0 });

    const rung = frame(socket);
    const created = await rest('POST', '/v1/peerings', {
      consumer: 'rome',
      provider: 'milan',
      resources: { cpu: '2' },
    });
    expect(created.status).toBe(202);
    expect(created.headers.location).toBe(`/v1/peerings/${created.body.id}`);
    const bell = (await rung) as { type: string; revision: number };
    expect(bell.type).toBe('desired');
    const { body } = await consumer.call('GET', '/v1/agent/desired?after=0');
    expect(body.revision).toBeGreaterThanOrEqual(bell.revision);
    expect(body.sets[0].peer).toBe('milan');
    socket.close();
  });

  test('stays closed for a foreign key', async () => {
    const agent = await joined('pisa');
    const key = generateKeyPairSync('ed25519').privateKey;
    await expect(agent.connect({ key })).rejects.toThrow('status 401');
  });

  test('stays closed for a replay', async () => {
    const agent = await joined('bari');
    (await agent.connect()).close();
    await expect(agent.connect({ authorization: agent.lastAuthorization })).rejects.toThrow('status 401');
  });

  test('is closed when the cluster leaves, and its key is refused from then on', async () => {
    const agent = await joined('asti');
    const socket = await agent.connect();
    const closed = new Promise((resolve) => socket.once('close', resolve));
    expect((await rest('DELETE', '/v1/clusters/asti')).body).toMatchObject({ name: 'asti', state: 'left' });
    expect(await closed).toBe(1008);
    expect((await agent.call('GET', '/v1/agent/desired')).status).toBe(401);
  });

  test('ignores frames it does not know', async () => {
    const agent = await joined('como');
    const socket = await agent.connect();
    socket.send('nonsense');
    socket.send(JSON.stringify({ type: 'from the future' }));
    socket.send(JSON.stringify({ type: 'ping' }));
    expect(await frame(socket)).toMatchObject({ type: 'pong', revision: 0 });
    socket.close();
  });
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

describe('a data directory', () => {
  test('has one broker at a time', async () => {
    await expect(startBroker(options())).rejects.toMatchObject({ code: 'in_use' });
  });

  test('keeps everything over a restart: keys, clusters, the CA', async () => {
    const own = await mkdtemp(path.join(tmpdir(), 'isthmus-restart-'));
    const first = await startBroker(options({ dataDir: own }));
    await first.close();
    const second = await startBroker(options({ dataDir: own, listen: `127.0.0.1:${first.port}` }));
    expect([second.caHash, second.adminKey]).toEqual([first.caHash, undefined]);
    const me = await send({
      method: 'GET',
      url: `${second.url}/v1/tenants/me`,
      ca: second.caPem,
      headers: { authorization: `Bearer ${first.adminKey}` },
    });
    expect(me.body).toMatchObject({ tenant: 'default', role: 'admin' });
    await second.close();
    await rm(own, { recursive: true, force: true });
  });

  test('gives a new admin key on request, when the first is lost', async () => {
    const own = await mkdtemp(path.join(tmpdir(), 'isthmus-key-'));
    await (await startBroker(options({ dataDir: own }))).close();
    const again = await startBroker(options({ dataDir: own, newAdminKey: true }));
    expect(again.adminKey).toMatch(/^isk_/);
    await again.close();
    await rm(own, { recursive: true, force: true });
  });
});

test('a broker stops although an agent does not answer its farewell', async () => {
  const own = await mkdtemp(path.join(tmpdir(), 'isthmus-stop-'));
  const brief = await startBroker(options({ dataDir: own }));
  const { body } = await send({
    method: 'POST',
    url: `${brief.url}/v1/join-tokens`,
    ca: brief.caPem,
    headers: { authorization: `Bearer ${brief.adminKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ cluster: 'mute' }),
  });
  const agent = new ScriptedAgent(body.token, brief.caPem);
  await agent.enroll();
  const socket = await agent.connect();
  socket.pause();
  await brief.close();
  socket.terminate();
  await rm(own, { recursive: true, force: true });
});

test('a broker that stops answers its long polls first', async () => {
  const own = await mkdtemp(path.join(tmpdir(), 'isthmus-drain-'));
  const brief = await startBroker(options({ dataDir: own }));
  const url = `${brief.url}/v1/events?cursor=`;
  const headers = { authorization: `Bearer ${brief.adminKey}` };
  const { body } = await send({ method: 'GET', url: `${brief.url}/v1/events`, ca: brief.caPem, headers });
  const polled = send({
    method: 'GET',
    url: `${url}${encodeURIComponent(body.cursor)}&wait=20`,
    ca: brief.caPem,
    headers,
  });
  await expect.poll(() => brief.waiting(), { timeout: 30_000 }).toBe(1);
  await brief.close();
  expect((await polled).status).toBe(200);
  await rm(own, { recursive: true, force: true });
});
