/** Two tenants at one broker, each with its own login: what the commands across tenants say and do. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Broker, startBroker } from '#functions/local/broker.ts';
import { facts, ScriptedAgent, send } from '#functions/local/scripted-agent.ts';
import { silentLog } from '#shared/ports/log.ts';
import { isthmus, type Options, type Ran } from './captured-io.ts';

let dir = '';
let ca = '';
let broker: Broker;
const open = { ...facts, policies: facts.policies.map((policy) => ({ ...policy, tenants: ['*'] })) };

const cli = (tenant: string, args: readonly string[], options: Options = {}): Promise<Ran> =>
  isthmus(args, { env: { ISTHMUS_CONFIG: path.join(dir, `${tenant}.json`) }, ...options });
const acme = (line: string, options?: Options) => cli('acme', line.split(' '), options);
const bolt = (line: string, options?: Options) => cli('bolt', line.split(' '), options);

async function post(key: string, where: string, body: unknown) {
  const { status, body: answer } = await send({
    method: 'POST',
    url: `${broker.url}${where}`,
    ca,
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  expect(status).toBe(201);
  return answer;
}

async function joined(key: string, cluster: string): Promise<void> {
  const { token } = await post(key, '/v1/join-tokens', { cluster });
  const agent = new ScriptedAgent(token, ca);
  expect((await agent.enroll({ facts: open })).status).toBe(200);
}

beforeAll(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'isthmus-across-'));
  broker = await startBroker({
    dataDir: path.join(dir, 'data'),
    listen: '127.0.0.1:0',
    tenant: 'acme',
    newAdminKey: false,
    newOperatorKey: true,
    log: silentLog,
    version: '0',
  });
  ca = await readFile(broker.caFile, 'utf8');
  const other = await post(broker.operatorKey ?? '', '/v1/tenants', { name: 'bolt' });
  const keys = { acme: broker.adminKey ?? '', bolt: other.firstKey.secret as string };
  for (const [tenant, key] of Object.entries(keys)) {
    const login = ['login', broker.url, '--ca-hash', broker.caHash, '--key', '-'];
    expect((await cli(tenant, login, { stdin: key })).code).toBe(0);
  }
  await joined(keys.acme, 'rome');
  await joined(keys.acme, 'turin');
  await joined(keys.bolt, 'milan');
}, 60_000);
afterAll(async () => {
  await broker.close();
  await rm(dir, { recursive: true, force: true });
});

describe('an invitation', () => {
  test('is made, listed without its code, redeemed from standard input, and seen by both', async () => {
    const made = await bolt('invite create milan --cpu 2 --uses 2 --note spring');
    expect(made.code).toBe(0);
    expect(made.out).toMatch(/^isi_bolt_[0-9a-z]+_\S{43}\n$/);
    expect((await bolt('invite list')).out).toMatch(/milan +open +cpu 2 +default +0\/2 +-/);
    expect((await bolt('invite list -o json')).out).not.toContain(made.out.trim());
    const redeemed = await acme('redeem - rome', { stdin: made.out });
    expect(redeemed.out).toMatch(/^peering rome -> milan \(pe_\S+\) is Connecting: /);
    expect((await bolt('invite list')).out).toContain('acme/rome');
    expect((await acme('describe peering rome milan')).out).toContain(
      'provider is of tenant bolt, by invitation, at most cpu 2',
    );
    expect((await bolt('describe peering rome milan')).out).toContain('consumer is of tenant acme');
  });

  test('is revoked, says what it was used for, and is useless then', async () => {
    const { items } = JSON.parse((await bolt('invite list -o json')).out) as { items: { id: string }[] };
    const revoked = await bolt(`invite revoke ${items[0]?.id}`);
    expect(revoked.out).toContain('is revoked');
    expect(revoked.err).toContain('isthmus unpeer rome milan    # of tenant acme');
    const { out } = await bolt('invite create milan --expires-in 1h');
    const [id] = (await bolt('invite list -o name')).out.trim().split('\n').slice(-1);
    await bolt(`invite revoke ${id?.replace('invitation/', '')}`);
    expect(await acme('redeem - rome', { stdin: out })).toMatchObject({
      code: 6,
      err: expect.stringContaining('was revoked'),
    });
  });

  test('each tenant labels the peering for itself', async () => {
    expect((await bolt('label peering rome milan customer=seven')).out).toBe('customer=seven\n');
    expect((await acme('label peering rome milan team=shop')).out).toBe('team=shop\n');
    expect((await acme('get peerings -l customer -o name')).out).toBe('');
    expect((await acme('describe peering rome milan')).out).toContain('Labels:   team=shop\n');
    expect((await bolt('label peering rome milan')).out).toBe('customer=seven\n');
  });

  test('either tenant ends the peering', async () => {
    expect((await bolt('unpeer rome milan')).out).toMatch(/is Unpeering|gone/);
    expect((await acme('describe peering rome milan')).out).toContain('ended by the provider');
  });

  test.each([
    { line: 'redeem nonsense rome', code: 4, says: 'no invitation has this code' },
    { line: 'redeem - rome', code: 2, says: 'no code came from standard input' },
    { line: 'invite create atlantis', code: 4, says: 'no cluster atlantis' },
    { line: 'invite create rome --cpu lots', code: 2, says: 'Kubernetes quantities' },
    { line: 'invite revoke iv_nope', code: 4, says: 'there is no invitation' },
  ])('$line ends with $code', async ({ line, code, says }) => {
    expect(await acme(line)).toMatchObject({ code, err: expect.stringContaining(says) });
  });
});

describe('a request', () => {
  test('is for a published cluster, waits in the inbox, and is answered', async () => {
    expect(await acme('requests send rome bolt/milan --cpu 1')).toMatchObject({ code: 4 });
    expect((await bolt('directory publish milan --region eu-1 --labels tier=gold --cpu 8')).out).toContain(
      'bolt/milan',
    );
    expect((await acme('directory list --labels tier=gold')).out).toMatch(
      /bolt\/milan +eu-1 +default +cpu 8 +tier=gold/,
    );
    expect((await acme('directory list --region eu-2')).err).toContain('no published clusters');
    const sent = await cli('acme', ['requests', 'send', 'rome', 'bolt/milan', '--cpu', '1', '--reason', 'spring load']);
    expect(sent.out).toMatch(/^request rq_\S+ is pending\n$/);
    expect((await bolt('requests list')).out).toMatch(/acme\/rome +milan +pending +cpu 1 +default .* spring load/);
    const id = /rq_\S+/.exec(sent.out)?.[0] ?? '';
    const answered = await cli('bolt', ['requests', 'reject', id, '--reason', 'not this week']);
    expect(answered.out).toBe(`request ${id} is rejected\n`);
    expect((await acme('requests list --sent')).out).toMatch(/bolt\/milan +rejected .* not this week/);
    expect(await bolt(`requests approve ${id}`)).toMatchObject({
      code: 5,
      err: expect.stringContaining('is rejected'),
    });
  });

  test('is withdrawn by its maker only', async () => {
    const id = /rq_\S+/.exec((await acme('requests send rome bolt/milan')).out)?.[0] ?? '';
    expect(await bolt(`requests withdraw ${id}`)).toMatchObject({ code: 4 });
    expect((await acme(`requests withdraw ${id}`)).out).toBe(`request ${id} is withdrawn\n`);
    expect((await bolt('requests list --state withdrawn -o name')).out).toBe(`request/${id}\n`);
  });

  test('is approved at once by a rule, as often as the rule says', async () => {
    const made = await bolt('requests rule create friends --tenant acme --labels tier=gold --cpu 2 --uses 1');
    expect(made.out).toMatch(/^rule ar_\S+ \(friends\) approves up to 1 requests\n$/);
    expect(await bolt('requests rule create nobody')).toMatchObject({ code: 2 });
    expect((await acme('requests send turin bolt/milan --cpu 2')).out).toMatch(/is approved/);
    expect((await bolt('describe peering turin milan')).out).toContain('consumer is of tenant acme, by request');
    expect((await bolt('requests rule list')).out).toMatch(/friends +acme +cpu 2 +default +1\/1/);
    const id = /ar_\S+/.exec(made.out)?.[0] ?? '';
    expect((await bolt(`requests rule delete ${id}`)).out).toBe(`rule ${id} (friends) is deleted\n`);
    expect((await bolt('requests rule list')).err).toContain('no rules');
  });

  test('leads nowhere when the cluster is not published any more', async () => {
    expect((await bolt('directory unpublish milan')).out).toContain('no longer published');
    expect(await acme('requests send rome bolt/milan')).toMatchObject({ code: 4 });
    expect(await acme('requests send rome milan')).toMatchObject({
      code: 2,
      err: expect.stringContaining('TENANT/CLUSTER'),
    });
  });
});
