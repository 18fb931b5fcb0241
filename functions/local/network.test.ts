/** The network of a peering over real HTTPS: what is asked for, what two agents are told, what is refused. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { Peering, Problem } from '#shared/schema/api/resources.ts';
import { DesiredAnswer, type DesiredSet } from '#shared/schema/protocol/agent-protocol.ts';
import { type Broker, startBroker } from './broker.ts';
import { type Answer, facts, ScriptedAgent, send } from './scripted-agent.ts';

let dir = '';
let broker: Broker;
const agents = new Map<string, ScriptedAgent>();
const linking = {
  ...facts,
  capabilities: ['network'],
  network: {
    podCidrs: ['10.200.0.0/16'],
    externalCidrs: ['10.70.0.0/16'],
    nodeAddresses: ['192.0.2.1'],
    unknownToThisBroker: true,
  },
};

beforeAll(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'isthmus-network-'));
  broker = await startBroker({
    dataDir: dir,
    listen: '127.0.0.1:0',
    log: silentLog,
    clock: systemClock,
    version: '0.1.0',
  });
  for (const name of ['rome', 'milan', 'older']) {
    const { body } = await rest('POST', '/v1/join-tokens', { cluster: name });
    const agent = new ScriptedAgent(body.token, broker.caPem);
    expect((await agent.enroll(name === 'older' ? {} : { facts: linking })).status).toBe(200);
    agents.set(name, agent);
  }
});
afterAll(async () => {
  await broker.close();
  await rm(dir, { recursive: true, force: true });
});

const rest = (method: string, pathname: string, body?: unknown): Promise<Answer> =>
  send({
    method,
    url: broker.url + pathname,
    ca: broker.caPem,
    headers: {
      authorization: `Bearer ${broker.adminKey}`,
      ...(body !== undefined && { 'content-type': 'application/json' }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });

const agent = (name: string): ScriptedAgent => agents.get(name) ?? expect.fail(name);
async function desiredOf(name: string, peering: string): Promise<DesiredSet | undefined> {
  const answer = await agent(name).call('GET', '/v1/agent/desired?after=0');
  return DesiredAnswer.parse(answer.body).sets.find((set) => set.peering === peering);
}
const linkKinds = (set: DesiredSet | undefined) =>
  set?.objects.filter(({ apiVersion }) => apiVersion.startsWith('networking')).map(({ kind }) => kind);

const object = (kind: string, name: string, data: object) => ({
  apiVersion: 'networking.liqo.io/v1beta1',
  kind,
  name,
  uid: kind,
  data,
});
async function report(name: string, role: 'consumer' | 'provider', peering: string, objects: object[]): Promise<void> {
  const set = { peering, role, appliedRevision: 1, objects, refusals: [] };
  expect((await agent(name).call('POST', '/v1/agent/observed', { sets: [set] })).status).toBe(200);
}
const configuration = (peer: string) =>
  object('Configuration', peer, {
    remote: { cidr: { pod: ['10.201.0.0/16'], external: ['10.71.0.0/16'] } },
    conditions: [{ type: 'NetworkCIDRsConfigured', status: 'True' }],
  });
const end = (peer: string, kind: string, byte: number, value: string) => [
  configuration(peer),
  object(kind, peer, { candidates: kind === 'GatewayServer' ? ['192.0.2.9:30000'] : [] }),
  object('Secret', `gw-${peer}`, { publicKey: Buffer.alloc(32, byte).toString('base64') }),
  object('Connection', `gw-${peer}`, {
    value,
    latency: '2ms',
    mtu: 1320,
    peerEndpoint: '192.0.2.9:30000',
    lastHandshakeTime: new Date().toISOString(),
  }),
];

test('two agents are led through the exchanges of a link, and the peering shows it', async () => {
  const made = await rest('POST', '/v1/peerings', {
    consumer: 'rome',
    provider: 'milan',
    network: { mtu: 1400, serviceType: 'ClusterIP' },
  });
  expect(made.status).toBe(202);
  const { id, network } = Peering.parse(made.body);
  expect(network).toMatchObject({ enabled: true, gatewayLocation: 'provider', mtu: 1400, inBand: false });
  expect(linkKinds(await desiredOf('rome', id))).toEqual(['Configuration']);
  expect(linkKinds(await desiredOf('milan', id))).toEqual(['Configuration', 'GatewayServer']);

  await report('milan', 'provider', id, end('rome', 'GatewayServer', 2, 'Connecting'));
  expect(linkKinds(await desiredOf('rome', id))).toEqual(['Configuration', 'GatewayClient', 'PublicKey']);
  await report('rome', 'consumer', id, end('milan', 'GatewayClient', 1, 'Connected'));
  expect(linkKinds(await desiredOf('milan', id))).toEqual(['Configuration', 'GatewayServer', 'PublicKey']);
  await report('milan', 'provider', id, end('rome', 'GatewayServer', 2, 'Connected'));

  const shown = Peering.parse((await rest('GET', `/v1/peerings/${id}`)).body);
  expect(shown.conditions.find(({ type }) => type === 'NetworkReady')).toMatchObject({ status: 'True' });
  expect(shown.network?.link).toMatchObject({
    server: 'milan',
    endpoint: '192.0.2.9:30000',
    serviceType: 'ClusterIP',
    mtu: 1400,
    consumer: { status: 'Connected', latency: '2ms', mtu: 1320, peerEndpoint: '192.0.2.9:30000' },
    provider: { status: 'Connected', handshakeAgeSeconds: expect.any(Number) },
  });
  expect((await rest('GET', '/v1/clusters/rome')).body).toMatchObject({ network: { externalCidrs: ['10.70.0.0/16'] } });

  const gone = await rest('DELETE', `/v1/peerings/${id}`);
  expect([200, 202]).toContain(gone.status);
  expect(await desiredOf('rome', id)).toMatchObject({ state: 'absent', objects: [] });
});

test('an agent from before there were links is peered without one', async () => {
  const { body } = await rest('POST', '/v1/peerings', { consumer: 'rome', provider: 'older' });
  const { id, network } = Peering.parse(body);
  expect(network).toMatchObject({ enabled: false });
  expect(linkKinds(await desiredOf('older', id))).toEqual([]);
  expect(linkKinds(await desiredOf('rome', id))).toEqual([]);
  expect((await desiredOf('rome', id))?.objects.length).toBeGreaterThan(0);
});

describe('is refused with field, value and what is accepted:', () => {
  test.each([
    { network: { mtu: 1279 }, field: 'network.mtu', says: '1280' },
    { network: { gatewayLocation: 'middle' }, field: 'network.gatewayLocation', says: 'provider' },
    { network: { serviceType: 'ExternalName' }, field: 'network.serviceType', says: 'NodePort' },
    { network: { inBand: true, enabled: false }, field: 'network.inBand', says: 'accepted is false' },
    { network: { enabled: true }, provider: 'older', field: 'network.enabled', says: 'upgrade it' },
  ])('$network', async ({ network, provider = 'milan', field, says }) => {
    const answer = await rest('POST', '/v1/peerings', {
      consumer: 'older',
      provider: provider === 'older' ? 'rome' : provider,
      network,
    });
    expect([answer.status, answer.body.code]).toEqual([422, 'invalid_input']);
    const { detail, errors = [] } = Problem.parse(answer.body);
    expect(JSON.stringify([detail, errors])).toContain(says);
    expect(JSON.stringify([detail, errors])).toContain(field);
  });
});
