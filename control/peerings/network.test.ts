/** Peerings with a network, with agents that make links and agents that do not. */
import { describe, expect, test } from 'vitest';
import type { ClusterFacts } from '#shared/schema/protocol/agent-protocol.ts';
import type { AskedNetwork } from '../model/network-terms.ts';
import { adminOf, type BrokerClusters, createBrokerClusters } from '../testing/broker-clusters.ts';
import { openFacts } from '../testing/simulated-cluster.ts';
import { linkingFacts } from '../testing/simulated-link.ts';

const admin = adminOf('default');
const linking = linkingFacts(openFacts);
const withPolicy = (network: ClusterFacts['policies'][number]['network']): ClusterFacts => ({
  ...linking,
  policies: linking.policies.map((policy) => ({ ...policy, ...(network ? { network } : {}) })),
});

async function pair(facts: { readonly rome?: ClusterFacts; readonly milan?: ClusterFacts } = {}) {
  const clusters = createBrokerClusters();
  const rome = await clusters.join('rome', { facts: facts.rome ?? linking });
  const milan = await clusters.join('milan', { facts: facts.milan ?? linking });
  milan.links.address = '198.51.100.2:30000';
  return { world: clusters, rome, milan };
}
const ask = async (clusters: BrokerClusters, consumer: string, provider: string, network?: AskedNetwork) =>
  (await clusters.control.peerings.request(admin, { consumer, provider, resources: {}, network })).peering;
const view = (clusters: BrokerClusters, id: string) => clusters.control.peerings.get(admin, id);
const until = (clusters: BrokerClusters, id: string, phase: string) =>
  clusters.until(async () => (await view(clusters, id)).phase === phase);

describe('a new peering', () => {
  test('has a network when both agents make links, and shows the link', async () => {
    const { world: clusters, rome, milan } = await pair();
    const { id } = await ask(clusters, 'rome', 'milan');
    await until(clusters, id, 'Ready');
    expect((await view(clusters, id)).network).toEqual({
      enabled: true,
      gatewayLocation: 'provider',
      mtu: 1340,
      inBand: false,
      link: {
        server: 'milan',
        endpoint: '198.51.100.2:30000',
        serviceType: 'NodePort',
        mtu: 1340,
        consumer: { value: 'Connected', mtu: 1320, reportedAt: expect.any(Number) },
        provider: { value: 'Connected', mtu: 1320, reportedAt: expect.any(Number) },
      },
    });
    expect([rome.links.gateway('milan')?.kind, milan.links.gateway('rome')?.kind]).toEqual([
      'GatewayClient',
      'GatewayServer',
    ]);
  });

  test.each([
    { whose: 'consumer', facts: { rome: openFacts } },
    { whose: 'provider', facts: { milan: openFacts } },
  ])('goes without when the agent of the $whose is older', async ({ facts }) => {
    const { world: clusters, rome, milan } = await pair(facts);
    const { id, network } = await ask(clusters, 'rome', 'milan');
    expect(network?.enabled).toBe(false);
    await until(clusters, id, 'Ready');
    expect([...rome.links.peers, ...milan.links.peers]).toEqual([]);
    // The agent learns to make links, and a link is requested.
    for (const cluster of [rome, milan]) cluster.facts = linking;
    await clusters.step();
    expect((await ask(clusters, 'rome', 'milan')).network?.enabled).toBe(false);
    await ask(clusters, 'rome', 'milan', { enabled: true });
    await clusters.until(() => rome.links.peers.length > 0);
    await until(clusters, id, 'Ready');
    expect((await view(clusters, id)).network?.link?.consumer.value).toBe('Connected');
  });

  test('goes without when a policy forbids links', async () => {
    const { world: clusters } = await pair({ milan: withPolicy({ enabled: false, remoteCidrs: [] }) });
    expect((await ask(clusters, 'rome', 'milan')).network?.enabled).toBe(false);
  });
});

describe('refused, with nothing written, is', () => {
  const proxied = {
    ...linking,
    ...(linking.network ? { network: { ...linking.network, apiServerProxy: '10.70.0.9:8118' } } : {}),
  };
  test.each<{
    what: string;
    network: Record<string, unknown>;
    facts?: { rome?: ClusterFacts; milan?: ClusterFacts };
    code?: string;
    field: string;
    says: string;
  }>([
    {
      what: 'an MTU of 1279',
      network: { mtu: 1279 },
      field: 'network.mtu',
      says: 'network.mtu is 1279; accepted is a whole number from 1280',
    },
    {
      what: 'a third side',
      network: { gatewayLocation: 'both' },
      field: 'network.gatewayLocation',
      says: 'consumer or provider',
    },
    {
      what: 'another Service',
      network: { serviceType: 'ExternalName' },
      field: 'network.serviceType',
      says: 'LoadBalancer, NodePort, ClusterIP',
    },
    {
      what: 'in-band without network',
      network: { inBand: true, enabled: false },
      field: 'network.inBand',
      says: 'network.inBand is true without a network',
    },
    {
      what: 'in-band with an agent that makes no links',
      network: { inBand: true },
      facts: { rome: openFacts },
      field: 'network.inBand',
      says: 'without a network',
    },
    {
      what: 'in-band without a proxy',
      network: { inBand: true },
      field: 'network.inBand',
      says: 'milan offers no proxy',
    },
    {
      what: 'a network with an older agent',
      network: { enabled: true },
      facts: { milan: openFacts },
      field: 'network.enabled',
      says: 'the agent of milan makes no links; upgrade it',
    },
    {
      what: 'a network that the provider forbids',
      network: { enabled: true },
      facts: { milan: withPolicy({ enabled: false, remoteCidrs: [] }) },
      code: 'policy_refused',
      field: 'network.enabled',
      says: 'PeeringPolicy default of milan forbids links',
    },
    {
      what: 'ranges that the consumer does not want',
      network: { enabled: true },
      facts: { rome: withPolicy({ enabled: true, remoteCidrs: ['10.0.0.0/17'] }), milan: proxied },
      code: 'policy_refused',
      field: 'network.enabled',
      says: 'milan has 10.200.0.0/16; PeeringPolicy default of rome accepts 10.0.0.0/17',
    },
  ])('$what', async ({ network, facts, code = 'invalid_input', field, says }) => {
    const { world: clusters } = await pair(facts);
    await expect(ask(clusters, 'rome', 'milan', network)).rejects.toMatchObject({
      code,
      message: expect.stringContaining(says),
      detail: { field, accepted: expect.any(String) },
    });
    expect((await clusters.control.peerings.list(admin)).items).toEqual([]);
  });
});

describe('two peerings of a pair', () => {
  async function bothWays() {
    const setting = await pair();
    const { world: clusters } = setting;
    const first = await ask(clusters, 'rome', 'milan');
    await until(clusters, first.id, 'Ready');
    const second = await ask(clusters, 'milan', 'rome', { gatewayLocation: 'provider', mtu: 1280 });
    await until(clusters, second.id, 'Ready');
    return { ...setting, first: first.id, second: second.id };
  }
  const shape = ({ rome, milan }: Awaited<ReturnType<typeof pair>>) =>
    JSON.stringify([rome.links.gateway('milan'), milan.links.gateway('rome')]);

  test('have one link: the second reuses it, regardless of its own terms', async () => {
    const setting = await bothWays();
    const { world: clusters, first, second } = setting;
    const links = [(await view(clusters, first)).network?.link, (await view(clusters, second)).network?.link];
    expect(links.map((link) => [link?.server, link?.mtu])).toEqual([
      ['milan', 1340],
      ['milan', 1340],
    ]);
  });

  test.each(['first', 'second'] as const)('keep it when the %s ends, and the last takes it along', async (which) => {
    const setting = await bothWays();
    const { world: clusters, rome, milan } = setting;
    const before = shape(setting);
    const other = which === 'first' ? 'second' : 'first';
    await clusters.control.peerings.unpeer(admin, setting[which]);
    await clusters.until(async () => {
      expect(shape(setting)).toBe(before);
      return (await view(clusters, setting[which])).phase === 'Gone';
    });
    expect(await view(clusters, setting[other])).toMatchObject({
      phase: 'Ready',
      network: { link: { server: 'milan' } },
    });
    await clusters.control.peerings.unpeer(admin, setting[other]);
    await until(clusters, setting[other], 'Gone');
    expect([...rome.links.peers, ...milan.links.peers, ...rome.remains, ...milan.remains]).toEqual([]);
    expect((await view(clusters, setting[other])).network).not.toHaveProperty('link');
  });

  test('both follow when the one that decides changes its mind', async () => {
    const setting = await bothWays();
    const { world: clusters, first, second } = setting;
    await ask(clusters, 'rome', 'milan', { mtu: 1400, gatewayLocation: 'consumer' });
    for (const id of [first, second])
      expect((await view(clusters, id)).network?.link).toMatchObject({ server: 'rome', mtu: 1400 });
    await clusters.until(() => setting.rome.links.gateway('milan')?.kind === 'GatewayServer');
    await until(clusters, second, 'Ready');
    await until(clusters, first, 'Ready');
    expect(setting.milan.links.gateway('rome')).toMatchObject({
      kind: 'GatewayClient',
      spec: { endpoint: { addresses: ['198.51.100.1'] } },
    });
  });
});

describe('across tenants', () => {
  const marked = (mark: string, network?: ClusterFacts['policies'][number]['network']): ClusterFacts => ({
    ...linking,
    policies: linking.policies.map((policy) => ({
      ...policy,
      name: mark,
      tenants: ['*'],
      ...(network ? { network } : {}),
    })),
  });
  async function invited(milanNetwork?: ClusterFacts['policies'][number]['network']) {
    const { world: clusters, rome, milan, acme, bolt } = await foreigners();
    rome.facts = marked('INNER-ROME');
    milan.facts = marked('INNER-MILAN', milanNetwork);
    milan.links.address = 'gw.inner-milan.example:30000';
    await clusters.step();
    const { code } = await clusters.control.invitations.create(bolt, { cluster: 'milan', limits: {} });
    const { peering } = await clusters.control.invitations.redeem(acme, { code, consumer: 'rome' });
    return { world: clusters, rome, milan, acme, bolt, id: peering.id };
  }
  async function foreigners() {
    const clusters = createBrokerClusters();
    const rome = await clusters.join('rome', { tenant: 'acme' });
    const milan = await clusters.join('milan', { tenant: 'bolt' });
    return { world: clusters, rome, milan, acme: adminOf('acme'), bolt: adminOf('bolt') };
  }

  test('a link is made, and each tenant sees its own end of it', async () => {
    const { world: clusters, acme, bolt, id } = await invited();
    await clusters.until(async () => (await clusters.control.peerings.get(acme, id)).phase === 'Ready');
    const link = async (actor: typeof acme) => (await clusters.control.peerings.get(actor, id)).network?.link;
    expect(await link(acme)).toEqual({
      server: 'milan',
      serviceType: 'NodePort',
      mtu: 1340,
      consumer: { value: 'Connected', mtu: 1320, reportedAt: expect.any(Number) },
      provider: { value: 'Connected', reportedAt: expect.any(Number) },
    });
    expect((await link(bolt))?.endpoint).toBe('gw.inner-milan.example:30000');
    await clusters.control.peerings.unpeer(bolt, id);
    await clusters.until(async () => (await clusters.control.peerings.get(acme, id)).phase === 'Gone');
    expect([...clusters.clusters.values()].flatMap(({ links }) => links.peers)).toEqual([]);
  });

  test('neither tenant hears what policy the other has', async () => {
    const { world: clusters, acme, id } = await invited({ enabled: false, remoteCidrs: [] });
    expect((await clusters.control.peerings.get(acme, id)).network?.enabled).toBe(false);
    const terms = { consumer: 'rome', provider: 'milan', resources: {}, network: { enabled: true } };
    const refused = await clusters.control.peerings.request(acme, terms).catch((error: unknown) => error);
    expect(refused).toMatchObject({
      code: 'policy_refused',
      message: expect.stringContaining('not both clusters allow it'),
    });
    expect(JSON.stringify(refused, Object.getOwnPropertyNames(refused))).not.toMatch(/INNER-MILAN/);
  });
});

test('a gateway that moves is found where it is now', async () => {
  const { world: clusters, rome, milan } = await pair();
  const { id } = await ask(clusters, 'rome', 'milan');
  await until(clusters, id, 'Ready');
  milan.links.address = '203.0.113.5:31234';
  await clusters.step();
  await until(clusters, id, 'Ready');
  expect(rome.links.gateway('milan')).toMatchObject({
    spec: { endpoint: { addresses: ['203.0.113.5'], port: 31_234 } },
  });
});

test('a link that goes down makes the peering Degraded until it is back', async () => {
  const { world: clusters, milan } = await pair();
  const { id } = await ask(clusters, 'rome', 'milan');
  await until(clusters, id, 'Ready');
  milan.links.up = false;
  await until(clusters, id, 'Degraded');
  expect((await view(clusters, id)).waitingFor).toMatch(/hears nothing from/);
  milan.links.up = true;
  await until(clusters, id, 'Ready');
});

test('unpeering ends with a dead side, and asks neither for a link any more', async () => {
  const { world: clusters, rome, milan } = await pair();
  const { id } = await ask(clusters, 'rome', 'milan');
  await until(clusters, id, 'Ready');
  milan.alive = false;
  milan.apiUp = false;
  await clusters.control.peerings.unpeer(admin, id);
  await until(clusters, id, 'Gone');
  expect(rome.links.peers).toEqual([]);
  milan.alive = true;
  milan.apiUp = true;
  await clusters.until(() => milan.links.peers.length === 0 && milan.remains.length === 0);
});
