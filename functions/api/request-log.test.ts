/** The access log, by which an operator finds tenant and request: what each line says, and what none says. */
import { beforeEach, describe, expect, test } from 'vitest';
import { hostedLimits } from '#control/limits/limits.ts';
import { newAgentKeys } from '#control/testing/agent-keys.ts';
import { openFacts, SimulatedCluster } from '#control/testing/simulated-cluster.ts';
import { handler as connect } from '#functions/channel/connect.ts';
import { invocationContext } from '#functions/local/invocation.ts';
import { createJsonLog } from '#functions/runtime/json-log.ts';
import { type ApiFixture, createApiFixture } from '#functions/testing/api-fixture.ts';

interface Line extends Readonly<Record<string, unknown>> {
  readonly msg: string;
}

let written: string[] = [];
beforeEach(() => {
  written = [];
});
const log = createJsonLog('info', { write: (line) => void written.push(line) });
const lines = (msg: string): Line[] =>
  written.map((line) => JSON.parse(line) as Line).filter((line) => line.msg === msg);
const last = () => lines('request').at(-1) ?? expect.fail('no request was logged');

describe('each request is one line', () => {
  let fixture: ApiFixture;
  let key = '';
  beforeEach(async () => {
    fixture = await createApiFixture({ log, limits: { ...hostedLimits, requestsPerMinute: 5 } });
    key = await fixture.tenant('acme');
  });

  test('with the request id of its answer, the tenant, the caller, the route and the outcome', async () => {
    const { headers } = await fixture.call({ method: 'GET', path: '/v1/clusters?limit=1', key });
    expect(last()).toMatchObject({
      level: 'info',
      requestId: headers['x-request-id'],
      tenant: 'acme',
      principal: expect.stringMatching(/^api-key\/ak_/),
      route: 'GET /v1/clusters',
      from: '192.0.2.1',
      status: 200,
      ms: 0,
    });
  });

  test('has the tenant of a request that is refused because of its limit or its rights', async () => {
    const viewer = await fixture.keyOf(key, 'viewer');
    await fixture.call({ method: 'POST', path: '/v1/join-tokens', key: viewer, body: { cluster: 'rome' } });
    expect(last()).toMatchObject({ tenant: 'acme', status: 403, code: 'forbidden', route: 'POST /v1/join-tokens' });
    for (let i = 0; i < 5; i += 1) await fixture.call({ method: 'GET', path: '/v1/tenant', key });
    expect(last()).toMatchObject({ tenant: 'acme', status: 429, code: 'rate_limited' });
  });

  test('has no tenant while the caller is not known, and none for the operator', async () => {
    await fixture.call({ method: 'GET', path: '/v1/tenant', key: 'isk_wrong' });
    expect(last()).toMatchObject({ status: 401 });
    expect(last()).not.toHaveProperty('tenant');
    await fixture.call({ method: 'GET', path: '/v1/tenants', key: fixture.operatorKey });
    expect(last()).toMatchObject({ status: 200, principal: expect.stringMatching(/^operator\/ok_/) });
    expect(last()).not.toHaveProperty('tenant');
  });

  test('has the tenant and the cluster of an agent, on its WebSocket too', async () => {
    const keys = newAgentKeys();
    await fixture.join({ tenant: 'acme', key, cluster: 'rome', keys });
    const agent = { tenant: 'acme', cluster: 'rome', keys };
    await fixture.signed(agent, { method: 'GET', path: '/v1/agent/desired?after=0' });
    const ofAgent = { tenant: 'acme', principal: 'cluster/rome', status: 200 };
    expect(last()).toMatchObject({ ...ofAgent, route: 'GET /v1/agent/desired' });
    const requestContext = { connectionId: 'c1', requestId: 'r1', identity: { sourceIp: '192.0.2.7' } };
    const context = invocationContext(fixture.composition, '$connect', 'r1');
    await connect({ requestContext, headers: {}, isBase64Encoded: false } as never, context);
    expect(last()).toMatchObject({
      requestId: 'r1',
      connectionId: 'c1',
      route: '$connect',
      from: '192.0.2.7',
      status: 401,
    });
  });

  test('has neither bodies, nor queries, nor credentials', async () => {
    await fixture.call({
      method: 'POST',
      path: '/v1/keys?secret-in-query=1',
      key,
      body: { name: 'secret-in-body', role: 'viewer' },
    });
    const all = written.join('');
    expect(all).not.toContain('secret-in');
    expect(all).not.toContain(key);
    expect(all).not.toContain(fixture.operatorKey);
  });

  test('is not made of probes that need no key', async () => {
    const before = lines('request').length;
    await fixture.call({ method: 'GET', path: '/v1/health' });
    expect(lines('request')).toHaveLength(before);
  });
});

test('a request can be followed by its id from the API over the agents to conditions and to the audit log', async () => {
  const fixture = await createApiFixture({ log });
  const key = await fixture.tenant('acme');
  const clusters = ['rome', 'milan'].map((id) => new SimulatedCluster(id, 'acme', () => fixture.control));
  for (const { id } of clusters) await fixture.join({ tenant: 'acme', key, cluster: id, facts: openFacts });
  const asked = await fixture.call({
    method: 'POST',
    path: '/v1/peerings',
    key,
    body: { consumer: 'rome', provider: 'milan', resources: { cpu: '1' } },
  });
  const requestId = asked.headers['x-request-id'];
  const peering = asked.body.id as string;
  const phase = async () => (await fixture.call({ method: 'GET', path: `/v1/peerings/${peering}`, key })).body.phase;
  const told = new Set<unknown>();
  const until = async (wanted: string) => {
    for (let round = 0; (await phase()) !== wanted; round += 1) {
      if (round > 200) throw new Error(`the peering is ${await phase()}, not ${wanted}`);
      for (const cluster of clusters) {
        const agent = {
          tenant: 'acme',
          clusterId: cluster.id,
          principal: `cluster/${cluster.id}`,
          from: '',
          requestId: 'poll',
        };
        for (const set of (await fixture.control.exchange.desired(agent, 0)).sets) told.add(set.requestId);
        await cluster.pull();
        cluster.work((id) => clusters.find((one) => one.id === id));
        await cluster.report();
      }
      fixture.clock.advance(500);
      await fixture.control.peerings.sweep();
    }
  };
  await until('Ready');
  expect([...told]).toEqual([requestId]);
  expect(lines('peering moved').map((line) => line.requestId)).toEqual(lines('peering moved').map(() => requestId));
  expect(lines('peering moved').at(-1)).toMatchObject({ tenant: 'acme', peering, to: 'Ready' });
  expect(lines('condition of a peering changed')).toContainEqual(
    expect.objectContaining({ requestId, tenant: 'acme', peering, condition: 'NodeReady', status: 'True' }),
  );
  const audit = async () =>
    (await fixture.call({ method: 'GET', path: `/v1/audit?subject=peering/${peering}`, key })).body.items as {
      readonly action: string;
      readonly requestId: string;
    }[];
  expect(new Set((await audit()).map((record) => record.requestId))).toEqual(new Set([requestId]));

  told.clear();
  written.length = 0;
  const ended = await fixture.call({ method: 'DELETE', path: `/v1/peerings/${peering}`, key });
  const endedBy = ended.headers['x-request-id'];
  await until('Gone');
  expect(new Set(lines('peering moved').map((line) => line.requestId))).toEqual(new Set([endedBy]));
  expect(told).toContain(endedBy);
});
