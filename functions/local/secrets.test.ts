import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startIdentityProvider } from '#control/testing/identity-provider.ts';
import { createJsonLog } from '#functions/runtime/json-log.ts';
import { type Broker, startBroker } from './broker.ts';
import { type Answer, facts, ScriptedAgent, send } from './scripted-agent.ts';

let dir = '';
let broker: Broker;
const logged: string[] = [];
beforeAll(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'isthmus-secrets-'));
  broker = await startBroker({
    dataDir: dir,
    listen: '127.0.0.1:0',
    log: createJsonLog('debug', { write: (line) => void logged.push(line) }),
    allowPrivateIssuers: true,
    version: '0.1.0',
  });
});
afterAll(() => rm(dir, { recursive: true, force: true }));

/** Every secret of the session, by what it is. */
const secrets = new Map<string, string>();
/** Every refusal that was answered. */
const refusals: string[] = [];

async function ask(
  method: string,
  pathname: string,
  key: string | undefined,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const answer = await send({
    method,
    url: broker.url + pathname,
    ca: broker.caPem,
    headers: {
      ...(key !== undefined && { authorization: `Bearer ${key}` }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  if (answer.status >= 400) refusals.push(JSON.stringify(answer.body));
  return answer;
}

const secret = (what: string, value: string | undefined): string => {
  if (value === undefined || value.length < 20) throw new Error(`${what} is no secret: ${value}`);
  secrets.set(what, value);
  return value;
};

/** A tenant's life: everything that makes, uses, misuses or shows a secret. */
async function session(): Promise<void> {
  const operator = secret('operator key', broker.operatorKey);
  const first = secret('first admin key', broker.adminKey);
  const made = await ask('POST', '/v1/tenants', operator, { name: 'acme' });
  const admin = secret('admin key of the tenant', made.body.firstKey.secret);
  const created = await ask('POST', '/v1/keys', admin, { name: 'ci', role: 'operator' }, { 'idempotency-key': 'once' });
  const ci = secret('API key', created.body.secret);
  await ask('POST', '/v1/keys', admin, { name: 'ci', role: 'operator' }, { 'idempotency-key': 'once' });
  const rotated = await ask('POST', `/v1/keys/${created.body.key.id}/rotate`, admin, { overlapSeconds: 60 });
  secret('rotated API key', rotated.body.secret);

  const agents: ScriptedAgent[] = [];
  for (const cluster of ['rome', 'milan']) {
    const { body } = await ask('POST', '/v1/join-tokens', admin, { cluster });
    const agent = new ScriptedAgent(secret(`join token of ${cluster}`, body.token), broker.caPem);
    secret(`secret of the join token of ${cluster}`, agent.token.secret);
    expect((await agent.enroll()).status).toBe(200);
    secret(`signed enrolment of ${cluster}`, agent.lastAuthorization.replace('Bearer ', ''));
    agents.push(agent);
  }
  const [rome] = agents as [ScriptedAgent];
  await rome.call('POST', '/v1/agent/observed', { facts, sets: [] });
  secret('signed report', rome.lastAuthorization.replace('Bearer ', ''));
  refusals.push(
    JSON.stringify(
      (await rome.call('GET', '/v1/agent/desired', undefined, { authorization: rome.lastAuthorization })).body,
    ),
  );
  refusals.push(
    JSON.stringify((await rome.enroll({ token: 'x'.repeat(43) })).body),
    JSON.stringify((await rome.enroll({ token: 7 })).body),
  );
  (await rome.connect()).close();
  secret('signed doorbell', rome.lastAuthorization.replace('Bearer ', ''));

  const idp = await startIdentityProvider(['portal']);
  try {
    const audience = 'https://broker.test';
    await ask('POST', '/v1/issuers', admin, { url: idp.url, audience });
    await ask('POST', '/v1/members', admin, { issuer: idp.url, subject: 'portal', role: 'viewer' });
    const token = secret('token of the identity provider', await idp.token('portal'));
    expect((await ask('GET', '/v1/clusters', token, undefined, { 'isthmus-tenant': 'acme' })).status).toBe(200);
    await ask('GET', '/v1/clusters', token, undefined, { 'isthmus-tenant': 'default' });
    await ask('GET', '/v1/clusters', token);
  } finally {
    await idp.close();
  }

  const peering = await ask('POST', '/v1/peerings', ci, { consumer: 'rome', provider: 'milan' });
  expect(peering.status).toBe(202);
  const invited = await ask('POST', '/v1/invitations', admin, { cluster: 'milan' });
  const code = secret('code of the invitation', invited.body.code);
  await ask('POST', '/v1/invitations/redeem', first, { code, consumer: 'nowhere' });
  await ask('POST', '/v1/invitations/redeem', first, { code: code.repeat(20), consumer: 'nowhere' });
  for (const key of [`${admin}x`, operator, 'x.y.z', `${ci} ${ci}`]) await ask('GET', '/v1/clusters', key);
  // Where a secret has no business: in a path, in a query, in a name.
  await ask('GET', `/v1/clusters/${encodeURIComponent(`${admin}`)}`, admin);
  await ask('GET', '/v1/tenants', admin);
  const asked = await ask('POST', '/v1/tenant/deletion', admin);
  const confirmation = secret('confirmation of the deletion', asked.body.confirmation);
  await ask('POST', '/v1/tenant/deletion/confirm', admin, { name: 'wrong', confirmation });
  await ask('POST', '/v1/tenant/deletion/confirm', admin, { name: 'acme', confirmation: confirmation.repeat(5) });
  await ask('POST', '/v1/tenant/deletion/confirm', admin, { name: 'acme', confirmation });
  await ask('GET', '/v1/tenant/export', admin);
}

test('no secret of a whole session is in the logs, the files, the events, the audit log or an error', async () => {
  await session();
  const told: Record<string, string> = { refusals: '' };
  for (const what of ['/v1/events', '/v1/audit', '/v1/keys', '/v1/tenant/export', '/v1/invitations']) {
    const { body } = await ask('GET', what, secrets.get('admin key of the tenant'));
    told[what] = JSON.stringify(body);
  }
  await broker.close();
  told.log = logged.join('');
  // A key used as a path segment gets "no such cluster", which repeats the requested name.
  told.refusals = refusals.filter((text) => !text.includes('there is no cluster')).join('\n');
  for (const file of await readdir(dir, { recursive: true, withFileTypes: true })) {
    if (!file.isFile() || file.parentPath.endsWith('tls')) continue;
    told[file.name] = (await readFile(path.join(file.parentPath, file.name))).toString('latin1');
  }
  expect(told.log).toContain('"msg":"request"');
  expect(told['broker.db']?.length).toBeGreaterThan(10_000);
  const found = [...secrets].flatMap(([what, value]) =>
    Object.entries(told).flatMap(([where, text]) => (text.includes(value) ? [`${what} is in ${where}`] : [])),
  );
  expect(found).toEqual([]);
  expect(secrets.size).toBeGreaterThanOrEqual(13);
}, 30_000);
