/**
 * A tenant of the same broker, with an account, a key of role admin and a cluster that has joined, against another tenant: everything of the REST API and of
 * the agents' protocol, over HTTPS, to a broker that keeps its state in SQLite. 5,000 operations between four tenants, in memory: functions/api/isolation.test.ts.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Broker, startBroker } from '#functions/local/broker.ts';
import { type Answer, facts, ScriptedAgent, send } from '#functions/local/scripted-agent.ts';
import { fromSchema, type Schema, seededChoice } from '#functions/testing/from-schema.ts';
import { type Operation, operations, schemaOf } from '#functions/testing/operations.ts';
import { silentLog } from '#shared/ports/log.ts';

let dir = '';
let broker: Broker;
let keyOfVictim = '';
let keyOfThief = '';
let victim: ScriptedAgent;
let thief: ScriptedAgent;
/** What the victim has, by the names that paths give them. */
let known: Readonly<Record<string, string>>;

const call = (key: string, method: string, pathname: string, body?: unknown): Promise<Answer> =>
  send({
    method,
    url: broker.url + pathname,
    ca: broker.caPem,
    headers: { authorization: `Bearer ${key}`, ...(body !== undefined && { 'content-type': 'application/json' }) },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
// biome-ignore lint/suspicious/noExplicitAny: an answer of any operation
async function made(key: string, pathname: string, body: object): Promise<any> {
  const { status, body: answer } = await call(key, 'POST', pathname, body);
  if (status >= 300) throw new Error(`POST ${pathname}: ${status} ${JSON.stringify(answer)}`);
  return answer;
}
async function joined(key: string, cluster: string): Promise<ScriptedAgent> {
  const { token } = await made(key, '/v1/join-tokens', { cluster });
  const agent = new ScriptedAgent(token, broker.caPem);
  expect((await agent.enroll()).status).toBe(200);
  return agent;
}

beforeAll(async () => {
  dir = await mkdtemp(path.join(os.tmpdir(), 'isthmus-hostile-tenant-'));
  broker = await startBroker({ dataDir: dir, listen: '127.0.0.1:0', log: silentLog, version: '0' });
  keyOfVictim = (await made(broker.operatorKey ?? '', '/v1/tenants', { name: 'acme' })).firstKey.secret;
  keyOfThief = (await made(broker.operatorKey ?? '', '/v1/tenants', { name: 'globex' })).firstKey.secret;
  victim = await joined(keyOfVictim, 'rome');
  await joined(keyOfVictim, 'milan');
  thief = await joined(keyOfThief, 'rome');
  const has = async (prefix: string, pathname: string, body: object): Promise<string> => {
    const text = JSON.stringify(await made(keyOfVictim, pathname, body));
    const id = new RegExp(`\\b${prefix}_[0-9a-z]{26}\\b`).exec(text)?.[0];
    if (id === undefined) throw new Error(`no ${prefix}_ in ${text}`);
    return id;
  };
  const peering = await has('pe', '/v1/peerings', { consumer: 'rome', provider: 'milan' });
  const webhook = await has('wh', '/v1/webhooks', { url: 'https://hooks.acme.invalid', types: ['*'] });
  const invitation = await has('iv', '/v1/invitations', { cluster: 'milan' });
  const key = await has('ak', '/v1/keys', { name: 'mark-acme', role: 'viewer' });
  const member = await has('mb', '/v1/members', { email: 'p@mark-acme.example', role: 'viewer' });
  known = { peering, webhook, invitation, key, member, cluster: 'milan', tenant: 'acme' };
}, 120_000);
afterAll(async () => {
  await broker?.close();
  await rm(dir, { recursive: true, force: true });
});

/** All that the victim sees of itself, without what time changes. */
async function whole(): Promise<string> {
  const lists = ['clusters', 'peerings', 'webhooks', 'invitations', 'keys', 'members', 'requests', 'tenant'];
  const answers = await Promise.all(lists.map((list) => call(keyOfVictim, 'GET', `/v1/${list}`)));
  expect(answers.map(({ status }) => status)).toEqual(lists.map(() => 200));
  return JSON.stringify(answers.map(({ body }) => body)).replace(/"(lastSeen|lastUsed)[^"]*":"[^"]*"/g, '');
}

/** Of an object that another tenant has, and of one that does not exist. */
function paths({ path: template, parameters }: Operation): readonly [string, string] | undefined {
  const named = parameters.filter(({ in: where }) => where === 'path').map(({ name }) => name);
  if (!named.some((name) => known[name] !== undefined)) return undefined;
  const fill = (of: (name: string) => string): string =>
    named.reduce((text, name) => text.replace(`{${name}}`, of(name)), template);
  const never = (name: string): string =>
    (known[name] ?? 'ev_').replace(/_.*/, `_${'0'.repeat(26)}`).replace(/^[a-z]+$/, 'nobodys');
  return [fill((name) => known[name] ?? never(name)), fill(never)];
}

test('what another tenant has is to a tenant as if it had never been, by every operation that names it, and stays as it was', async () => {
  const before = await whole();
  const choice = seededChoice(1);
  const told: string[] = [];
  const tried: string[] = [];
  for (const operation of operations.filter(({ agent }) => !agent)) {
    const both = paths(operation);
    if (both === undefined) continue;
    tried.push(operation.id);
    const source = { choice, resolve: schemaOf, text: (name: string, _: Schema) => known[name] ?? 'word' };
    const body = operation.body && fromSchema(operation.body, source);
    const [theirs, nobodys] = [
      await call(keyOfThief, operation.method, both[0], body),
      await call(keyOfThief, operation.method, both[1], body),
    ];
    const words = ({ body: answer }: Answer): string => JSON.stringify([answer?.code, answer?.title]);
    if (theirs.status < 400 || theirs.status !== nobodys.status || words(theirs) !== words(nobodys))
      told.push(
        `${operation.method} ${both[0]}: ${theirs.status} ${words(theirs)}, of nobody ${nobodys.status} ${words(nobodys)}`,
      );
    if (JSON.stringify(theirs.body).includes('mark-acme')) told.push(`${operation.method} ${both[0]} has its words`);
  }
  expect(told).toEqual([]);
  expect(tried.length).toBeGreaterThan(25);
  expect(await whole()).toBe(before);
});

test('a joined cluster speaks for no cluster of another tenant, and not about its peerings', async () => {
  const before = await whole();
  const report = { facts: { ...facts, nodes: 99 }, sets: [] };
  const asVictim = { claims: { iss: 'rome', sub: 'acme/rome' } };
  expect(await thief.call('POST', '/v1/agent/observed', report, asVictim)).toMatchObject({ status: 401 });
  expect(await thief.call('GET', '/v1/agent/desired?after=0', undefined, asVictim)).toMatchObject({ status: 401 });
  await expect(thief.connect(asVictim)).rejects.toThrow(/401/);
  const enrolled = await thief.enroll({}, { claims: { sub: 'acme/rome' } });
  expect(enrolled.status).toBeGreaterThanOrEqual(400);

  const about = {
    peering: known.peering,
    role: 'consumer',
    appliedRevision: 99,
    objects: [],
    refusals: [],
    ended: true,
  };
  await thief.call('POST', '/v1/agent/observed', { ...report, sets: [about] });
  const desired = await thief.call('GET', '/v1/agent/desired?after=0');
  expect(desired.body.sets).toEqual([]);
  expect((await victim.call('GET', '/v1/agent/desired?after=0')).body.sets).toHaveLength(1);
  expect(await whole()).toBe(before);
});
