/** The network rows of the three exchanges, by the state machine alone. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { KubeManifest } from '#shared/schema/protocol/agent-protocol.ts';
import type { LinkLayout } from '../../model/link.ts';
import type { NetworkTerms } from '../../model/network-terms.ts';
import type { PeeringState, SideInput } from '../../model/peering-records.ts';
import { openFacts } from '../../testing/simulated-cluster.ts';
import { linkingFacts } from '../../testing/simulated-link.ts';
import { nextLink } from './decide.ts';
import { type EndReport, readEnd } from './reports.ts';
import {
  configuration,
  connection,
  here,
  key,
  milanKey,
  network,
  object,
  report,
  romeKey,
  run,
  server,
  spec,
  there,
  working,
} from './testing/link-reports.ts';

const wanted = (objects: readonly KubeManifest[] | undefined, kind: string) => objects?.find((o) => o.kind === kind);
const linkKinds = (objects: readonly KubeManifest[] | undefined) =>
  objects?.filter((o) => o.apiVersion.startsWith('networking')).map((o) => o.kind);

describe('the exchanges of a link', () => {
  test('begin with the ranges of both and the gateway that is dialled', () => {
    const { desiredConsumer, desiredProvider } = run([], []);
    expect(linkKinds(desiredConsumer?.objects)).toEqual(['Configuration']);
    expect(linkKinds(desiredProvider?.objects)).toEqual(['Configuration', 'GatewayServer']);
    expect(wanted(desiredProvider?.objects, 'Configuration')).toMatchObject({
      metadata: { name: 'rome', namespace: 'liqo-tenant-rome', labels: { 'liqo.io/remote-cluster-id': 'rome' } },
      spec: { remote: { cidr: { pod: ['10.200.0.0/16'], external: ['10.70.0.0/16'] } } },
    });
    expect(wanted(desiredProvider?.objects, 'GatewayServer')).toMatchObject({
      spec: { mtu: 1340, endpoint: { port: 51_840, serviceType: 'NodePort' } },
    });
  });

  test('go on with the client, which dials candidate zero and knows them all, and the key of the server', () => {
    const { desiredConsumer, desiredProvider } = run([configuration('milan')], there);
    expect(linkKinds(desiredConsumer?.objects)).toEqual(['Configuration', 'GatewayClient', 'PublicKey']);
    expect(wanted(desiredConsumer?.objects, 'GatewayClient')).toMatchObject({
      metadata: {
        name: 'milan',
        annotations: { 'networking.isthmus.dev/peer-candidates': '["192.0.2.1:30000","192.0.2.2:30000"]' },
      },
      spec: { endpoint: { addresses: ['192.0.2.1'], port: 30_000, protocol: 'UDP' } },
    });
    expect(wanted(desiredConsumer?.objects, 'PublicKey')).toMatchObject({ spec: { publicKey: milanKey } });
    expect(linkKinds(desiredProvider?.objects)).toEqual(['Configuration', 'GatewayServer']);
  });

  test('end with the key of the client', () => {
    const { desiredProvider } = run(here, there);
    expect(wanted(desiredProvider?.objects, 'PublicKey')).toMatchObject({
      metadata: { name: 'rome', labels: { 'networking.liqo.io/gateway-resource': 'true' } },
      spec: { publicKey: romeKey },
    });
  });

  test('go the other way around when the consumer is to be dialled', () => {
    const terms = { ...network, gatewayLocation: 'consumer' as const, serviceType: 'LoadBalancer' as const, mtu: 1400 };
    const { desiredConsumer, desiredProvider } = run([], [], { spec: { ...spec, network: terms } });
    expect(linkKinds(desiredProvider?.objects)).toEqual(['Configuration']);
    expect(wanted(desiredConsumer?.objects, 'GatewayServer')).toMatchObject({
      spec: { mtu: 1400, endpoint: { serviceType: 'LoadBalancer' } },
    });
  });

  test('forget nothing that a later report lacks, and follow an endpoint and a key that change', () => {
    const first = run(here, there);
    const silent = run([], [], { state: first.state });
    expect(silent.desiredConsumer).toEqual(first.desiredConsumer);
    expect(silent.desiredProvider).toEqual(first.desiredProvider);
    const moved = run(here, [configuration('rome'), server('203.0.113.9:31000'), key('rome', romeKey)], {
      state: first.state,
    });
    expect(wanted(moved.desiredConsumer?.objects, 'GatewayClient')).toMatchObject({
      metadata: { annotations: { 'networking.isthmus.dev/peer-candidates': '["203.0.113.9:31000"]' } },
      spec: { endpoint: { addresses: ['203.0.113.9'], port: 31_000 } },
    });
    expect(wanted(moved.desiredConsumer?.objects, 'PublicKey')).toMatchObject({ spec: { publicKey: romeKey } });
  });

  test('name the address from which an agent is seen, last, and nothing that cannot be dialled', () => {
    const provider = { ...report('provider', there), publicAddresses: ['198.51.100.7', '127.0.0.1', 'fe80::1'] };
    const { desiredConsumer } = run(here, there, { provider });
    const text = wanted(desiredConsumer?.objects, 'GatewayClient')?.metadata.annotations;
    expect(JSON.parse(text?.['networking.isthmus.dev/peer-candidates'] ?? '')).toEqual([
      '192.0.2.1:30000',
      '192.0.2.2:30000',
      '198.51.100.7:30000',
    ]);
  });

  test('name no address of a dialled gateway that has not said its port, and the usual one of a gateway that dials', () => {
    const publicAddresses = ['198.51.100.7'];
    const early = run([configuration('milan')], [configuration('rome'), server()], {
      provider: { ...report('provider', [configuration('rome'), server()]), publicAddresses },
    });
    expect(wanted(early.desiredConsumer?.objects, 'GatewayClient')).toBeUndefined();
    const dialling = run(here, there, { consumer: { ...report('consumer', here), publicAddresses } });
    expect(wanted(dialling.desiredProvider?.objects, 'GatewayServer')?.metadata.annotations).toEqual({
      'networking.isthmus.dev/peer-candidates': '["198.51.100.7:51840"]',
    });
  });

  test('never happen when no link is requested, or an agent makes no links', () => {
    const { network: _, ...old } = spec;
    const older = { ...report('provider', []), facts: openFacts };
    for (const change of [
      { spec: old },
      { spec: { ...spec, network: { ...network, enabled: false } } },
      { provider: older },
    ]) {
      const { state, desiredConsumer, desiredProvider } = run(working, [], change);
      expect(linkKinds([...(desiredConsumer?.objects ?? []), ...(desiredProvider?.objects ?? [])])).toEqual([]);
      expect(state).toMatchObject({ phase: 'Ready' });
      expect(state.conditions.map(({ type }) => type)).not.toContain('NetworkReady');
    }
  });

  test('are undone when the link is no longer requested', () => {
    const { state } = run(here, there);
    const off = run(here, there, { state, spec: { ...spec, network: { ...network, enabled: false } } });
    expect(linkKinds(off.desiredConsumer?.objects)).toEqual([]);
    expect(off.state.link).toBeUndefined();
  });
});

test.each([
  { what: 'smaller than what both were asked for', mtu: 1300, annotation: '1300' },
  { what: 'what both were asked for', mtu: 1340, annotation: undefined },
  { what: 'no size at all', mtu: 12, annotation: undefined },
])('the size that one side found on the path is told to the other when it is $what', ({ mtu, annotation }) => {
  const { desiredConsumer, desiredProvider } = run(here, [...there, connection('rome', 'Connected', { mtu })]);
  const told = wanted(desiredConsumer?.objects, 'GatewayClient')?.metadata.annotations;
  expect(told?.['networking.isthmus.dev/peer-mtu']).toBe(annotation);
  const own = wanted(desiredProvider?.objects, 'GatewayServer')?.metadata.annotations;
  expect(own?.['networking.isthmus.dev/peer-mtu']).toBeUndefined();
});

describe('an API server behind the link', () => {
  const inBand = { ...spec, network: { ...network, inBand: true } };
  const signed = object('Secret', 'liqo-signed-nonce', { signedNonce: 'c2ln', csr: 'Y3Ny', publicKey: 'a2V5' });
  const facts = linkingFacts(openFacts);
  const provider: SideInput = {
    ...report('provider', there),
    facts: { ...facts, ...(facts.network ? { network: { ...facts.network, apiServerProxy: '10.70.0.9:8118' } } : {}) },
  };

  test('is reached by the address that the consumer knows it by, and nothing is issued before that is known', () => {
    const early = run([signed], there, { spec: inBand, provider });
    expect(wanted(early.desiredProvider?.objects, 'Tenant')).toBeUndefined();
    expect(early.state.conditions.find(({ status }) => status !== 'True')?.type).toBe('NetworkReady');
    const configured = run([signed, ...here], there, { spec: inBand, provider, state: early.state });
    expect(wanted(configured.desiredProvider?.objects, 'Tenant')).toBeUndefined();
    const up = [connection('milan', 'Connected'), connection('rome', 'Connected')] as const;
    const linked = { ...provider, observed: report('provider', [...there, up[1]]).observed } as SideInput;
    const known = run([signed, ...here, up[0]], [], { spec: inBand, provider: linked, state: configured.state });
    expect(wanted(known.desiredProvider?.objects, 'Tenant')).toMatchObject({
      spec: { proxyURL: 'http://10.71.0.9:8118' },
    });
    const silent = run([], [], { spec: inBand, state: known.state });
    expect(silent.desiredProvider).toEqual(known.desiredProvider);
  });
});

describe('the layout of a link that two peerings share', () => {
  const blank: EndReport = readEnd(undefined, 'x');
  const reports = { consumer: blank, provider: blank };
  const facts = linkingFacts(openFacts);
  const terms = fc.record({
    enabled: fc.constant(true),
    inBand: fc.constant(false),
    mtu: fc.constantFrom(1280, 1400),
    gatewayLocation: fc.constantFrom('consumer' as const, 'provider' as const),
  });
  const layoutOf = (
    id: string,
    wish: NetworkTerms,
    before: PeeringState['link'],
    opposite: LinkLayout | undefined,
    at: number,
  ) => {
    const [consumer, provider] = id === 'pe_a' ? ['rome', 'milan'] : ['milan', 'rome'];
    return nextLink({
      spec: { id, consumer: consumer ?? '', provider: provider ?? '', network: wish },
      before,
      opposite,
      consumer: { facts },
      provider: { facts },
      reports,
      now: at,
    });
  };

  test('becomes the same in both, for all terms and all orders of looks, and then stays', () => {
    const step = fc.record({
      who: fc.boolean(),
      stale: fc.boolean(),
      wish: fc.option(terms, { nil: undefined, freq: 4 }),
    });
    fc.assert(
      fc.property(terms, terms, fc.array(step, { maxLength: 20 }), (first, second, steps) => {
        const wishes = { pe_a: first, pe_b: second };
        const links: Partial<Record<'pe_a' | 'pe_b', PeeringState['link']>> = {};
        let seen: typeof links = {};
        const look = (me: 'pe_a' | 'pe_b', view: typeof links, at: number) => {
          links[me] = layoutOf(me, wishes[me], links[me], view[me === 'pe_a' ? 'pe_b' : 'pe_a']?.layout, at);
        };
        steps.forEach(({ who: actor, stale, wish }, at) => {
          const me = actor ? 'pe_a' : 'pe_b';
          if (wish) wishes[me] = wish;
          const before = { ...links };
          look(me, stale ? seen : links, at);
          seen = before;
        });
        for (let round = 0; round < 3; round += 1)
          for (const me of ['pe_a', 'pe_b'] as const) look(me, links, 100 + round);
        const settled = structuredClone(links);
        expect(settled.pe_a?.layout).toEqual(settled.pe_b?.layout);
        for (const me of ['pe_b', 'pe_a'] as const) look(me, links, 200);
        expect(links).toEqual(settled);
        // The remaining peering keeps it.
        look('pe_b', {}, 300);
        expect(links.pe_b?.layout).toEqual(settled.pe_b?.layout);
      }),
      { numRuns: 2_000 },
    );
  });
});
