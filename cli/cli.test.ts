/** The command line against a broker in a process of its own, with clusters whose agents are played. */
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { facts, ScriptedAgent, send } from '#functions/local/scripted-agent.ts';
import { type BrokerChild, serveBroker } from './broker-child.ts';
import { isthmus, type Options, type Ran } from './captured-io.ts';

let dir = '';
let broker: BrokerChild;
let key = '';
let ca = '';
const env = (): Record<string, string> => ({ ISTHMUS_CONFIG: path.join(dir, 'config.json') });
const cli = (line: string, options: Options = {}): Promise<Ran> => isthmus(line.split(' '), { env: env(), ...options });

beforeAll(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'isthmus-cli-'));
  broker = await serveBroker(path.join(dir, 'data'), '127.0.0.1:0');
  key = broker.adminKey ?? '';
  ca = await readFile(broker.caFile, 'utf8');
  expect((await cli(`login ${broker.url} --ca-hash ${broker.caHash} --key -`, { stdin: `${key}\n` })).code).toBe(0);
}, 60_000);
afterAll(async () => {
  await broker.end('SIGTERM');
  await rm(dir, { recursive: true, force: true });
});

/** A cluster whose agent does nothing but be there. */
async function joined(name: string): Promise<ScriptedAgent> {
  const config = JSON.parse(await readFile(env().ISTHMUS_CONFIG ?? '', 'utf8')) as { key: string };
  const { body } = await send({
    method: 'POST',
    url: `${broker.url}/v1/join-tokens`,
    ca,
    headers: { authorization: `Bearer ${config.key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ cluster: name }),
  });
  const agent = new ScriptedAgent(body.token, ca);
  expect((await agent.enroll()).status).toBe(200);
  return agent;
}

describe('login', () => {
  test('keeps the key in a file that only its owner reads', async () => {
    const file = env().ISTHMUS_CONFIG ?? '';
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect(JSON.parse(await readFile(file, 'utf8'))).toMatchObject({ url: broker.url });
  });

  test('never prints the key', async () => {
    const { out, err } = await cli(`login ${broker.url} --ca-hash ${broker.caHash} --key ${key}`);
    expect(out + err).not.toContain(key);
    expect(out).toContain('tenant default, role admin');
  });

  test('to an unknown certificate shows its hash and how to go on, and sends nothing', async () => {
    const { code, err } = await cli(`login ${broker.url} --key ${key}`);
    expect(code).toBe(3);
    expect(err).toContain(broker.caHash);
    expect(err).toContain('--ca-hash');
  });

  test('with another hash is refused', async () => {
    const { code, err } = await cli(`login ${broker.url} --key ${key} --ca-hash ${'0'.repeat(64)}`);
    expect([code, err]).toEqual([3, expect.stringContaining('shows no certificate with SHA-256 0000')]);
  });

  test('works with the CA file as well', async () => {
    expect((await cli(`login ${broker.url} --key ${key} --ca-file ${broker.caFile}`)).code).toBe(0);
  });

  test.each([
    { line: 'login ftp://x --key k', says: 'accepted is https://HOST:PORT', code: 2 },
    { line: 'login https://127.0.0.1:1 --key k', says: 'cannot be reached', code: 7 },
  ])('$line ends with $code', async ({ line, says, code }) => {
    expect(await cli(line)).toMatchObject({ code, err: expect.stringContaining(says) });
  });

  test('is asked for by every command that needs it', async () => {
    const { code, err } = await cli('get clusters', { env: { ISTHMUS_CONFIG: '/nonexistent/config.json' } });
    expect(code).toBe(3);
    expect(err).toContain('isthmus login URL --key KEY');
  });
});

describe('what the user gets wrong ends with an exit code and a way out', () => {
  test.each([
    { line: 'peer ulm ulm', code: 2, says: 'a cluster cannot peer with itself' },
    { line: 'peer ulm bonn', code: 4, says: 'no cluster ulm has joined' },
    { line: 'peer Ulm bonn', code: 2, says: 'lower-case letters' },
    { line: 'peer ulm bonn --cpu lots', code: 2, says: 'Kubernetes quantities like 2' },
    { line: 'peer ulm bonn --resource gpu', code: 2, says: 'NAME=QUANTITY' },
    {
      line: 'peer ulm bonn --mtu 1279',
      code: 2,
      says: "'1279' is invalid. Accepted are whole numbers from 1280 to 65535",
    },
    { line: 'peer ulm bonn --gateway-location both', code: 2, says: 'Allowed choices are consumer, provider' },
    { line: 'peer ulm bonn --gateway-service-type x', code: 2, says: 'LoadBalancer, NodePort, ClusterIP' },
    { line: 'peer ulm bonn --in-band --no-network', code: 2, says: 'accepted is false without a network' },
    { line: 'peer ulm', code: 2, says: "missing required argument 'provider'" },
    { line: 'unpeer ulm bonn', code: 4, says: 'ulm is not peered with bonn' },
    { line: 'describe peering ulm bonn', code: 4, says: 'isthmus get peerings' },
    { line: 'get clusters -o xml', code: 2, says: 'table, json, yaml, name' },
    { line: 'frobnicate', code: 2, says: "unknown command 'frobnicate'" },
    { line: 'key revoke ak_nope', code: 4, says: 'to do:' },
    { line: 'join ulm --kubeconfig /nonexistent', code: 2, says: 'the kubeconfig /nonexistent cannot be read' },
    { line: 'join ulm', code: 2, says: '--kubeconfig' },
    { line: 'peer ulm bonn --wait --timeout soon', code: 2, says: '30s, 5m or 1h' },
  ])('$line', async ({ line, code, says }) => {
    expect(await cli(line)).toMatchObject({ code, err: expect.stringContaining(says) });
  });
});

describe('with clusters', () => {
  beforeAll(async () => {
    await Promise.all([joined('rome'), joined('milan')]);
  });

  test('lists them in each format', async () => {
    const table = (await cli('get clusters')).out;
    expect(table).toMatch(/^NAME +STATE +SEEN/);
    expect(table).toMatch(/\nmilan +connected/);
    expect(JSON.parse((await cli('get clusters -o json')).out).items).toHaveLength(2);
    expect((await cli('get clusters -o yaml')).out).toMatch(/^items:\n {2}- name: milan/);
    expect((await cli('get clusters -o name')).out).toBe('cluster/milan\ncluster/rome\n');
  });

  test('labels them, and lists those that a selector finds', async () => {
    expect((await cli('label cluster rome tier=gold zone=a')).out).toBe('tier=gold\nzone=a\n');
    expect((await cli('label cluster rome zone-')).out).toBe('tier=gold\n');
    expect((await cli('get clusters -l tier -o name')).out).toBe('cluster/rome\n');
    expect((await cli('get clusters -l tier=silver -o name')).out).toBe('');
    expect(await cli('label cluster rome =x')).toMatchObject({ code: 2, err: expect.stringContaining('KEY=VALUE') });
  });

  test('peers two, says what is waited for, and describes both ends', async () => {
    const { code, out } = await cli('peer rome milan --cpu 2 --memory 1Gi --resource pods=5');
    expect([code, out]).toEqual([0, expect.stringMatching(/^peering rome -> milan \(\S+\) is \w+: /)]);
    const described = (await cli('describe peering rome milan')).out;
    expect(described).toContain('Asked:    ');
    expect(described).toContain('Network:  none');
    expect(described).toMatch(/Conditions of provider milan:/);
    expect(described).toMatch(/Waiting for: \S/);
    expect(described).toMatch(/Next step: {3}\S/);
    expect((await cli('get peerings')).out).toMatch(/rome +milan/);
  });

  test('labels it, shows the labels, and lists those that a selector finds', async () => {
    expect((await cli('peer rome milan --cpu 2 --labels team=shop,stage=prod')).code).toBe(0);
    expect((await cli('label peering rome milan')).out.trim().split('\n').sort()).toEqual(['stage=prod', 'team=shop']);
    expect((await cli('label peering rome milan stage- tier=gold')).out).toBe('team=shop\ntier=gold\n');
    expect((await cli('describe peering rome milan')).out).toContain('Labels:   team=shop,tier=gold\n');
    expect((await cli('get peerings -l team=shop,tier')).out).toMatch(/rome +milan .* team=shop,tier=gold/);
    expect(await cli('get peerings -l stage')).toMatchObject({ code: 0, err: 'no peering has the labels stage\n' });
    expect(await cli('label peering milan rome team=x')).toMatchObject({ code: 4 });
    expect(await cli('peer rome milan --labels team')).toMatchObject({
      code: 2,
      err: expect.stringContaining('KEY=VALUE'),
    });
  });

  test('are looked at by the doctor through the broker alone, without a kubeconfig', async () => {
    const none = await cli('doctor milan rome');
    expect([none.code, none.out]).toEqual([16, expect.stringContaining('knows no peering milan -> rome (not_peered')]);
    await cli('peer rome milan --cpu 2');
    const waits = await cli('doctor rome milan -o json');
    expect([waits.code, JSON.parse(waits.out)]).toMatchObject([
      16,
      { clusters: [], cause: { code: 'peering_waits', at: 'rome' }, looked: [`broker ${broker.url}`] },
    ]);
    const neither = await cli('doctor rome milan', { env: { ISTHMUS_CONFIG: '/nonexistent/config.json' } });
    expect([neither.code, neither.err]).toEqual([2, expect.stringContaining('nor a login at a broker')]);
  });

  test('gives up waiting at the deadline and says what was missing', async () => {
    const { code, err } = await cli('peer rome milan --wait --timeout 1s');
    expect(code).toBe(8);
    expect(err).toMatch(/after 1.0s the peering rome -> milan is \w+: /);
    expect(err).toContain('isthmus describe peering rome milan');
  });

  test('prints each change as one line of JSON while it waits', async () => {
    const { code, out, err } = await cli('peer rome milan --wait -o json --timeout 1s');
    const events = out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    expect([code, err]).toEqual([8, expect.stringContaining('deadline_exceeded')]);
    expect(events[0]).toMatchObject({
      event: 'waiting',
      consumer: 'rome',
      provider: 'milan',
      phase: expect.any(String),
    });
    expect(events[0]?.missing).toEqual(expect.arrayContaining([expect.objectContaining({ type: 'NodeReady' })]));
    expect(events.at(-1)).toMatchObject({ event: 'failed', code: 'deadline_exceeded', message: expect.any(String) });
    expect(events.filter(({ event }) => event !== 'waiting')).toHaveLength(1);
    expect(await cli('unpeer rome milan -o json')).toMatchObject({
      code: 2,
      err: expect.stringContaining('add --wait'),
    });
    expect(await cli('peer rome milan --wait -o yaml')).toMatchObject({
      code: 2,
      out: '',
      err: expect.stringContaining('--wait prints lines of JSON'),
    });
  });

  test('refuses a network that an agent cannot make, and says whose', async () => {
    expect(await cli('peer rome milan --cpu 2 --network')).toMatchObject({
      code: 2,
      err: expect.stringContaining('network.enabled is true, but the agent of rome makes no links; upgrade it'),
    });
  });

  test('refuses more than the provider allows', async () => {
    expect(await cli('peer milan rome --cpu 100')).toMatchObject({ code: 6, err: expect.stringContaining('cpu') });
  });

  test('does not let a cluster leave that has peerings', async () => {
    expect(await cli('leave milan')).toMatchObject({ code: 5, err: expect.stringContaining('rome -> milan') });
  });

  test('shows events and audit records', async () => {
    expect((await cli('get events')).out).toMatch(/peering\.\S+ +peering\//);
    expect((await cli('get audit --limit 3')).out.trim().split('\n')).toHaveLength(4);
  });

  test('follows events until it is interrupted', async () => {
    const stop = new AbortController();
    const following = cli('get events --follow -o json', {
      signal: stop.signal,
      onOut: (text) => text.includes('cluster/siena') && stop.abort(),
    });
    await joined('siena');
    expect((await following).code).toBe(130);
  });

  test('makes keys whose secret is all of the standard output', async () => {
    const { out } = await cli('key create ci --role viewer --expires-in 1h');
    expect(out).toMatch(/^isk_\S+\n$/);
    const { items } = JSON.parse((await cli('key list -o json')).out) as { items: { id: string; name: string }[] };
    const id = items.find(({ name }) => name === 'ci')?.id;
    expect((await cli(`key rotate ${id}`)).out).toMatch(/^isk_/);
    expect((await cli('key list')).out).toContain('active');
  });
});

/** Says that nothing is left, as an agent does that has removed everything. */
async function cleaned(agent: ScriptedAgent): Promise<void> {
  const { body } = await agent.call('GET', '/v1/agent/desired?after=0');
  const absent = body.sets.filter(({ state }: { state: string }) => state === 'absent');
  if (absent.length === 0) throw new Error(`nothing to remove in ${JSON.stringify(body.sets)}`);
  const sets = absent.map(({ peering, role, revision }: { peering: string; role: string; revision: number }) => ({
    peering,
    role,
    appliedRevision: revision,
    objects: [],
    refusals: [],
  }));
  expect((await agent.call('POST', '/v1/agent/observed', { facts, sets })).status).toBe(200);
}

describe('killing the broker at any moment', () => {
  test('loses nothing that it acknowledged, and a waiting command goes on', async () => {
    const agents = await Promise.all([joined('pavia'), joined('lucca')]);
    await cli('peer pavia lucca --cpu 1');
    let begun = () => {};
    const unpeering = new Promise<void>((resolve) => {
      begun = resolve;
    });
    const waiting = cli('unpeer pavia lucca --wait -o json --timeout 1m', {
      onOut: (text) => text.includes('Unpeering') && begun(),
    });
    await unpeering;
    const { port } = new URL(broker.url);
    await broker.end('SIGKILL');
    broker = await serveBroker(path.join(dir, 'data'), `127.0.0.1:${port}`);
    expect(broker.adminKey).toBeUndefined();
    for (const agent of agents) await cleaned(agent);
    const { code, out } = await waiting;
    const last = JSON.parse(out.trim().split('\n').at(-1) ?? '') as object;
    expect([code, last]).toMatchObject([0, { event: 'done', consumer: 'pavia', provider: 'lucca', phase: 'Gone' }]);
    expect((await cli('unpeer pavia lucca')).out).toBe('peering pavia -> lucca is gone already\n');
    const again = await cli('unpeer pavia lucca --wait -o json');
    expect(JSON.parse(again.out)).toMatchObject({ event: 'done', phase: 'Gone' });
    const local = await cli('unpeer pavia lucca --wait -o json --force --kubeconfig none');
    expect([local.code, local.err]).toEqual([2, expect.stringContaining('--force --kubeconfig asks none')]);
  }, 90_000);
});
