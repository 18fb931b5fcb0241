/** A broker in this process as agents meet it over HTTPS and WebSockets, its data directory, and how it stops. */
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
import { callersOf } from './testing/broker-callers.ts';

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

const { rest, tokenFor, joined } = callersOf(() => broker);

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
