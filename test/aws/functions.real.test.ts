/** The bundles as deployed, end to end: enrolling, peering, events through the bus, repairs by the sweep, the end of a peering. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createConnectionTable } from '#control/adapters/apigateway/connections.ts';
import { createListenerTable } from '#control/adapters/apigateway/listeners.ts';
import { createControl } from '#control/control.ts';
import { silentChannel } from '#control/ports/agent-channel.ts';
import { Crash, createFaultyStore } from '#control/testing/faulty-store.ts';
import { createSystemIds } from '#functions/runtime/system-ids.ts';
import { type Clock, ManualClock } from '#shared/ports/clock.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { brokerUrl, type Cloud, startCloud } from './cloud.ts';
import { type Answer, answerOf, LambdaAgent } from './lambda-agent.ts';
import { connectEvent, disconnectEvent, httpEvent, messageEvent, scheduledEvent } from './platform-events.ts';
import streamRecord from './samples/stream-record.json' with { type: 'json' };

const functions = [
  'api-health',
  'api-join-tokens-create',
  'api-clusters-get',
  'api-clusters-delete',
  'api-peerings-create',
  'api-peerings-get',
  'api-peerings-delete',
  'api-events-list',
  'channel-agent-enroll',
  'channel-agent-observed',
  'channel-agent-desired',
  'channel-connect',
  'channel-message',
  'channel-disconnect',
  'events-dispatch',
  'events-peerings',
  'events-cluster-left',
  'schedule-sweep',
];

const tenant = 'acme';
let cloud: Cloud;
let apiKey = '';
const agents = new Map<string, LambdaAgent>();

/** The control plane in this process, over the same table. */
const controlHere = (clock: Clock = systemClock, wrap = createFaultyStore().wrap) =>
  createControl({
    store: wrap(cloud.store(clock)),
    channel: silentChannel,
    clock,
    ids: createSystemIds(() => clock.now()),
    log: silentLog,
    broker: () => ({ url: brokerUrl }),
    heartbeatSeconds: 300,
  });

beforeAll(async () => {
  cloud = await startCloud(functions);
  const issued = await controlHere().tenants.bootstrap(tenant, { from: 'deployment', requestId: 'start' });
  apiKey = issued?.secret ?? '';
});
afterAll(() => cloud.stop());

async function rest<T = Record<string, unknown>>(
  name: string,
  method: string,
  path: string,
  over: { readonly body?: unknown; readonly pathParameters?: Record<string, string>; readonly route?: string } = {},
): Promise<Answer<T>> {
  const { body, ...more } = over;
  const event = httpEvent({
    method,
    path,
    authorization: `Bearer ${apiKey}`,
    ...(body !== undefined && { body: JSON.stringify(body) }),
    ...more,
  });
  return answerOf<T>(await cloud.invoke(name, event));
}

async function joined(cluster: string): Promise<LambdaAgent> {
  const { body } = await rest<{ token: string }>('api-join-tokens-create', 'POST', '/v1/join-tokens', {
    body: { cluster },
  });
  const agent = new LambdaAgent(cloud, body.token);
  expect((await agent.enroll()).status).toBe(200);
  agents.set(cluster, agent);
  return agent;
}

const peer = (consumer: string, provider: string) =>
  rest<{ id: string; phase: string }>('api-peerings-create', 'POST', '/v1/peerings', {
    body: { consumer, provider, resources: { cpu: '1' } },
  });

const phase = async (id: string): Promise<string> =>
  (
    await rest<{ phase: string }>('api-peerings-get', 'GET', `/v1/peerings/${id}`, {
      pathParameters: { peering: id },
      route: '/v1/peerings/{peering}',
    })
  ).body.phase;

async function exchange(...taking: readonly LambdaAgent[]): Promise<void> {
  for (const { cluster } of taking) {
    await cluster.pull();
    cluster.work((id) => agents.get(id)?.cluster);
    await cluster.report();
  }
}

async function reach(wanted: string, id: string, ...taking: readonly LambdaAgent[]): Promise<void> {
  for (let round = 0; round < 12 && (await phase(id)) !== wanted; round += 1) await exchange(...taking);
  expect(await phase(id)).toBe(wanted);
}

describe('an agent', () => {
  test('enrols, opens its doorbell, is answered on it, and leaves it', async () => {
    const agent = await joined('ulm');
    expect(await agent.connect()).toBe(200);
    expect(await agent.say({ type: 'ping' })).toMatchObject({ status: 200, body: { type: 'pong', revision: 0 } });
    expect((await agent.say({ type: 'something newer' })).status).toBe(200);
    expect(await agent.disconnect()).toBe(200);
    expect((await agent.say({ type: 'ping' })).status).toBe(410);
    const { body } = await rest('api-clusters-get', 'GET', '/v1/clusters/ulm', { pathParameters: { cluster: 'ulm' } });
    expect(body).toMatchObject({ name: 'ulm', online: true });
  });

  test('is refused at the doorbell without a signature of its own key', async () => {
    const agent = await joined('kiel');
    const stranger = new LambdaAgent(
      cloud,
      `isthmus1.${Buffer.from(JSON.stringify({ clusterId: 'kiel', tenant, secret: 'x' })).toString('base64url')}`,
    );
    expect(await stranger.connect()).toBe(401);
    expect(await agent.connect()).toBe(200);
    await agent.disconnect();
  });

  test('is told where its doorbell is', async () => {
    const agent = await joined('gotha');
    const { body } = await agent.call('POST', 'channel-agent-observed', '/v1/agent/observed', { sets: [] });
    expect(body).toMatchObject({ revision: 0, doorbellUrl: cloud.sockets.endpoint.replace('http', 'ws') });
  });

  test('reads what is desired', async () => {
    const agent = await joined('jena');
    const { status, body } = await agent.call('GET', 'channel-agent-desired', '/v1/agent/desired', undefined, {
      after: '0',
    });
    expect([status, body.full, body.sets]).toEqual([200, true, []]);
  });
});

test('two clusters peer, ring by ring, and events through stream, bus and rules find nothing left to do', async () => {
  const [rome, milan] = [await joined('rome'), await joined('milan')];
  await rome.connect();
  await milan.connect();
  const { status, body } = await peer('rome', 'milan');
  expect(status).toBe(202);
  expect([rome.rings.length > 0, milan.rings.length > 0]).toEqual([true, true]);
  await reach('Ready', body.id, rome, milan);
  expect(rome.rings.at(-1)).toEqual({ type: 'desired', revision: expect.any(Number) });

  const before = await cloud.dynamodb.dump(cloud.tableName);
  const ran = await cloud.deliver({ times: 2 });
  expect(ran).toContain('events-peerings');
  expect(sorted(await cloud.dynamodb.dump(cloud.tableName))).toEqual(sorted(before));

  const deleted = await rest('api-peerings-delete', 'DELETE', `/v1/peerings/${body.id}`, {
    pathParameters: { peering: body.id },
  });
  expect(deleted.status).toBeLessThan(300);
  await reach('Gone', body.id, rome, milan);
  expect([...rome.cluster.remains, ...milan.cluster.remains]).toEqual([]);
});

const sorted = (items: readonly unknown[]): string[] => items.map((item) => JSON.stringify(item)).sort();

test('a process that was replaced goes on where the other ended', async () => {
  const [bonn, trier] = [await joined('bonn'), await joined('trier')];
  const { body } = await peer('bonn', 'trier');
  for (let round = 0; round < 2; round += 1) {
    await exchange(bonn, trier);
    await cloud.cool('channel-agent-observed');
  }
  await reach('Ready', body.id, bonn, trier);
});

describe('a process that died between storing a report and looking at its peering', () => {
  /** Up to the report that would move the peering on, which is stored by a process that dies right after. All of it by `clock`. */
  async function reportedAndDied(consumer: string, provider: string, clock: Clock = systemClock): Promise<string> {
    const troubled = createFaultyStore();
    const here = controlHere(clock, troubled.wrap);
    const caller = { from: 'test', requestId: 'rq', tenant, principal: 'system', role: 'admin' } as const;
    for (const cluster of [consumer, provider]) {
      const { token } = await here.clusters.createJoinToken(caller, cluster);
      const joining = new LambdaAgent(cloud, token);
      await joining.enrollAt(here, clock.now());
      agents.set(cluster, joining);
    }
    const { peering } = await here.peerings.request(caller, { consumer, provider, resources: { cpu: '1' } });
    await cloud.lose();
    const agent = { tenant, clusterId: consumer, principal: `cluster/${consumer}`, from: '', requestId: 'rq' };
    const desired = await here.exchange.desired(agent, 0);
    const [set] = desired.sets;
    const objects = [
      {
        apiVersion: 'v1',
        kind: 'Secret',
        name: 'liqo-signed-nonce',
        namespace: `liqo-tenant-${provider}`,
        uid: 'u1',
        data: { signedNonce: 'c2ln', csr: 'Y3Ny', publicKey: 'a2V5' },
      },
    ];
    troubled.fault.in = 1;
    troubled.fault.when = 'after';
    const report = {
      peering: peering.id,
      role: 'consumer',
      appliedRevision: set?.revision ?? 0,
      objects,
      refusals: [],
    } as const;
    await expect(
      here.exchange.observe(agent, { sets: [{ ...report, objects: [...objects], refusals: [] }] }),
    ).rejects.toThrow(Crash);
    const desiredThere = await here.exchange.desired({ ...agent, clusterId: provider }, 0);
    expect(kindsIn(desiredThere.sets)).not.toContain('Tenant');
    return provider;
  }

  const kindsIn = (sets: readonly { readonly objects: readonly { readonly kind: string }[] }[]): string[] =>
    sets.flatMap(({ objects }) => objects.map(({ kind }) => kind));

  const kindsDesired = async (clusterId: string): Promise<string[]> => {
    const agent = agents.get(clusterId);
    const { body } = await (agent as LambdaAgent).call<{ sets: { objects: { kind: string }[] }[] }>(
      'GET',
      'channel-agent-desired',
      '/v1/agent/desired',
      undefined,
      { after: '0' },
    );
    return kindsIn(body.sets);
  };

  test('is made up for by its event', async () => {
    const provider = await reportedAndDied('graz', 'linz');
    expect(await cloud.deliver()).toContain('events-peerings');
    expect(await kindsDesired(provider)).toContain('Tenant');
  });

  test('is made up for by the sweep when the event is lost too', async () => {
    // A quarter of an hour ago: the look that was planned then is due now.
    const provider = await reportedAndDied('bern', 'chur', new ManualClock(Date.now() - 16 * 60_000));
    await cloud.lose();
    await cloud.invoke('schedule-sweep', scheduledEvent);
    expect(await kindsDesired(provider)).toContain('Tenant');
  });

  const stored = () => ({ store: cloud.store(), clock: systemClock });
  /** As its function would have noted it at the time. */
  const socketOpened = ({ tenant, clusterId, connectionId }: LambdaAgent): Promise<void> =>
    createConnectionTable({ ...stored(), listeners: createListenerTable(stored()) }).add(connectionId, {
      tenant,
      clusterId,
      principal: `cluster/${clusterId}`,
      from: '',
      requestId: 'rq',
    });

  const ofSockets: readonly {
    readonly what: string;
    readonly clusters: readonly [string, string];
    readonly connected: boolean;
    readonly act: (agent: LambdaAgent) => Promise<unknown>;
  }[] = [
    {
      what: 'a notify socket that opens after a silence',
      clusters: ['olten', 'thun'],
      connected: false,
      act: (agent) => agent.connect(),
    },
    {
      what: 'a ping after a silence',
      clusters: ['sion', 'brig'],
      connected: true,
      act: (agent) => agent.say({ type: 'ping' }),
    },
    {
      what: 'the end of a notify socket',
      clusters: ['biel', 'zug'],
      connected: true,
      act: (agent) => agent.disconnect(),
    },
  ];
  test.each(ofSockets)('is made up for by $what, which rings the other agent', async ({ clusters, connected, act }) => {
    const [consumer, provider] = clusters;
    await reportedAndDied(consumer, provider, new ManualClock(Date.now() - 16 * 60_000));
    await cloud.lose();
    const [here, there] = [agents.get(consumer) as LambdaAgent, agents.get(provider) as LambdaAgent];
    await socketOpened(there);
    if (connected) await socketOpened(here);
    await act(here);
    expect(there.rings).toEqual([{ type: 'desired', revision: expect.any(Number) }]);
  });
});

test('a cluster that leaves is hung up on by the rule, and one that vanished is forgotten when it is rung', async () => {
  const [gera, suhl, hof] = [await joined('gera'), await joined('suhl'), await joined('hof')];
  await gera.connect();
  await suhl.connect();
  await hof.connect();
  await cloud.lose();
  await rest('api-clusters-delete', 'DELETE', '/v1/clusters/gera', { pathParameters: { cluster: 'gera' } });
  expect(await cloud.deliver()).toContain('events-cluster-left');
  expect(cloud.sockets.deleted).toContain(gera.connectionId);

  cloud.sockets.vanish(suhl.connectionId);
  expect((await peer('suhl', 'hof')).status).toBe(202);
  expect(hof.rings.length).toBeGreaterThan(0);
  expect((await suhl.say({ type: 'ping' })).status).toBe(410);
});

test('a portal that listens is told by the dispatcher, reads the feed from where its pong said, and is hung up on when its key is revoked', async () => {
  const caller = { from: 'test', requestId: 'rq', tenant, principal: 'system', role: 'admin' } as const;
  const { key, secret } = await controlHere().tenants.createKey(caller, { name: 'portal', role: 'viewer' });
  const connectionId = 'portal=';
  const say = async (frame: unknown) =>
    answerOf<{ cursor: string }>(
      await cloud.invoke('channel-message', messageEvent(connectionId, JSON.stringify(frame))),
    );
  const opening = connectEvent(connectionId, `Bearer ${secret}`);
  expect(await cloud.invoke('channel-connect', opening)).toMatchObject({ statusCode: 200 });
  await cloud.lose();
  const { body } = await say({ type: 'ping' });
  expect(body).toEqual({ type: 'pong', cursor: expect.any(String) });
  await joined('lahr');
  await cloud.deliver();
  const frames = cloud.sockets.posted.filter((posted) => posted.connectionId === connectionId);
  expect(frames.length).toBeGreaterThan(0);
  for (const { frame } of frames) expect(frame).toEqual({ type: 'events' });
  const event = httpEvent({
    method: 'GET',
    path: '/v1/events',
    authorization: `Bearer ${secret}`,
    query: { cursor: body.cursor },
  });
  const feed = answerOf<{ items: { subject: string }[] }>(await cloud.invoke('api-events-list', event));
  expect(feed.body.items.map(({ subject }) => subject)).toContain('cluster/lahr');
  await controlHere().tenants.revokeKey(caller, key.id);
  await cloud.deliver();
  expect(cloud.sockets.deleted).toContain(connectionId);
  expect((await say({ type: 'ping' })).status).toBe(410);
  expect(await cloud.invoke('channel-connect', opening)).toMatchObject({ statusCode: 401 });
  // With another one, left on purpose.
  const other = connectEvent('portal2=', `Bearer ${apiKey}`);
  expect(await cloud.invoke('channel-connect', other)).toMatchObject({ statusCode: 200 });
  expect(await cloud.invoke('channel-disconnect', disconnectEvent('portal2='))).toMatchObject({ statusCode: 200 });
  expect(cloud.rights.refused).toEqual([]);
});

test('a sample stream record becomes an event, and what is unreadable is reported by its number', async () => {
  const bad = structuredClone(streamRecord);
  bad.dynamodb.NewImage.val.S = '{"id":1}';
  bad.dynamodb.SequenceNumber = '4421584500000000017450439092';
  expect(await cloud.invoke('events-dispatch', { Records: [streamRecord, bad] })).toEqual({
    batchItemFailures: [{ itemIdentifier: bad.dynamodb.SequenceNumber }],
  });
});

test('an event that is none of ours fails, so that it ends among the dead letters', async () => {
  const event = { id: 'x', 'detail-type': 'cluster.left', source: 'isthmus', detail: { nonsense: true } };
  await expect(cloud.invoke('events-peerings', event)).rejects.toThrow(/not one of this broker/);
});

test('health answers without a table', async () => {
  const { status } = await rest('api-health', 'GET', '/v1/health');
  expect(status).toBe(200);
});

test('the feed shows what happened, in order, and no function lacked a right', async () => {
  type Feed = { items: { type: string }[]; listenUrl: string };
  const { status, body } = await rest<Feed>('api-events-list', 'GET', '/v1/events');
  expect(status).toBe(200);
  expect(body.listenUrl).toBe(cloud.sockets.endpoint.replace('http', 'ws'));
  const first = ['tenant.created', 'cluster.join-token-created', 'cluster.joined'];
  expect(body.items.slice(0, 3).map(({ type }, i) => type.includes(first[i] ?? ''))).toEqual([true, true, true]);
  expect(cloud.rights.refused).toEqual([]);
  // Each that has rights on the table, health apart.
  expect([...cloud.rights.allowed.keys()].sort()).toEqual(functions.filter((name) => name !== 'api-health').sort());
  // One for each process that served the tenant.
  const withSessions = [...new Set(cloud.rights.sessions.map((session) => session.name))].sort();
  expect(withSessions).toEqual(['api-clusters-get', 'api-events-list', 'api-join-tokens-create', 'api-peerings-get']);
  expect(new Set(cloud.rights.sessions.map((session) => session.tenant))).toEqual(new Set([tenant]));
  expect(cloud.log).not.toContain('has no right');
  expect(cloud.log).not.toContain(apiKey);
});
