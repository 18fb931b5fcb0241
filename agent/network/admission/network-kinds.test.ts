import { describe, expect, test } from 'vitest';
import { allow, type Verdict } from '#agent/admission/review.ts';
import type { KubeObject } from '#shared/domain/kube-object.ts';
import type { ClusterCidrs, Configuration } from '#shared/schema/liqo/configuration.ts';
import type { Network, NetworkSpec } from '#shared/schema/liqo/network.ts';
import { validateConfiguration, validateGateway, validateNetwork } from './network-kinds.ts';

const textOf = (verdict: Verdict): string =>
  verdict.allowed ? (verdict.warnings ?? ['allowed']).join() : `${verdict.message} (${verdict.code})`;

const configuration = (remote: Partial<ClusterCidrs>, local?: Partial<ClusterCidrs>): Configuration => ({
  apiVersion: 'networking.liqo.io/v1beta1',
  kind: 'Configuration',
  metadata: { name: 'milan', namespace: 'liqo-tenant-milan' },
  spec: {
    remote: { cidr: { pod: [], external: [], ...remote } },
    ...(local && { local: { cidr: { pod: [], external: [], ...local } } }),
  },
});

describe('a Configuration', () => {
  test('may name any disjoint ranges of the peer, also ranges that this cluster uses', () => {
    const good = configuration({ pod: ['10.200.0.0/16', '10.201.0.0/16'], external: ['10.70.0.0/16'] });
    expect(validateConfiguration(undefined, good)).toBe(allow);
    const same = configuration({ pod: ['10.200.0.0/16'] }, { pod: ['10.200.0.0/16'] });
    expect(validateConfiguration(undefined, same)).toBe(allow);
  });

  test.each<[string, Configuration, RegExp]>([
    [
      'two pod ranges that overlap',
      configuration({ pod: ['10.0.0.0/8', '10.1.0.0/16'] }),
      /^spec\.remote\.cidr\.pod\[1\] is 10\.1\.0\.0\/16, which overlaps spec\.remote\.cidr\.pod\[0\] \(10\.0\.0\.0\/8\): accepted/,
    ],
    [
      'an external range in the pod range',
      configuration({ pod: ['10.0.0.0/8'], external: ['10.70.0.0/16'] }),
      /^spec\.remote\.cidr\.external\[0\] is 10\.70\.0\.0\/16, which overlaps spec\.remote\.cidr\.pod\[0\]/,
    ],
    ['host bits', configuration({ pod: ['10.0.0.1/16'] }), /pod\[0\] is 10\.0\.0\.1\/16.*accepted is 10\.0\.0\.0\/16/],
    ['everything', configuration({ pod: ['0.0.0.0/0'] }), /pod\[0\] is 0\.0\.0\.0\/0: accepted is a prefix length/],
    ['loopback', configuration({ external: ['127.0.0.0/8'] }), /external\[0\] is 127\.0\.0\.0\/8: .*loopback/],
    ['the range of tunnels', configuration({ pod: ['169.254.18.0/24'] }), /link-local/],
    ['a local range that is none', configuration({}, { pod: ['224.0.0.0/8'] }), /^spec\.local\.cidr\.pod\[0\] is 224/],
  ])('with %s is refused', (_, bad, message) => {
    const text = textOf(validateConfiguration(undefined, bad));
    expect(text).toMatch(message);
    expect(text).toContain('(invalid_input)');
  });

  test('that is bad already keeps its finalizers and labels movable, and is let go', () => {
    const bad = configuration({ pod: ['0.0.0.0/0'] });
    expect(validateConfiguration(bad, { ...bad, metadata: { ...bad.metadata, finalizers: [] } })).toBe(allow);
    const leaving = { ...bad, metadata: { ...bad.metadata, deletionTimestamp: '2026-11-21T08:00:00Z' } };
    expect(validateConfiguration(configuration({}), leaving)).toBe(allow);
  });
});

const gateway = (kind: string, name: string, peer?: string, namespace = 'liqo-tenant-milan'): KubeObject => ({
  apiVersion: 'networking.liqo.io/v1beta1',
  kind,
  metadata: { name, namespace, ...(peer && { labels: { 'liqo.io/remote-cluster-id': peer } }) },
});

describe('a gateway', () => {
  const server = gateway('GatewayServer', 'milan', 'milan');

  test('is accepted as the only link to its peer, and again under its own name', () => {
    expect(validateGateway(undefined, server, [gateway('GatewayServer', 'turin', 'turin')])).toBe(allow);
    expect(validateGateway(undefined, server, [server])).toBe(allow);
  });

  test.each([
    ['of the other kind', gateway('GatewayClient', 'milan', 'milan')],
    ['of the same kind', gateway('GatewayServer', 'second', 'milan')],
    ['in another namespace', gateway('GatewayServer', 'milan', 'milan', 'elsewhere')],
  ])('%s for the same peer is refused', (_, second) => {
    expect(textOf(validateGateway(undefined, second, [server]))).toMatch(
      /is milan, to which GatewayServer liqo-tenant-milan\/milan is the link already: accepted is one .*\(already_exists\)/,
    );
  });

  test('does not become the second link by a change of its label', () => {
    const other = gateway('GatewayServer', 'turin', 'turin');
    const moved = gateway('GatewayServer', 'turin', 'milan');
    expect(textOf(validateGateway(other, moved, [server, other]))).toContain('already_exists');
  });

  test('without a peer is refused', () => {
    expect(textOf(validateGateway(undefined, gateway('GatewayServer', 'x'), []))).toMatch(
      /remote-cluster-id\] is missing/,
    );
  });
});

const network = (
  name: string,
  spec: NetworkSpec,
  {
    type,
    exact = false,
    shared = false,
    granted,
  }: { type?: string; exact?: boolean; shared?: boolean; granted?: string },
): Network => ({
  apiVersion: 'ipam.liqo.io/v1alpha1',
  kind: 'Network',
  metadata: {
    name,
    namespace: 'liqo',
    labels: {
      ...(type && { 'ipam.liqo.io/network-type': type }),
      ...(exact && { 'ipam.liqo.io/network-not-remapped': 'true' }),
      ...(shared && { 'ipam.liqo.io/network-shared': 'true' }),
    },
  },
  spec,
  ...(granted && { status: { cidr: granted } }),
});
const reserved = (name: string, cidr: string) =>
  network(name, { cidr }, { type: 'reserved', exact: true, shared: true });
const pods = network('pod-cidr', { cidr: '10.200.0.0/16' }, { type: 'pod-cidr', exact: true, shared: true });
const peer = network('milan-pod', { cidr: '10.200.0.0/16' }, { granted: '10.71.0.0/16' });
const waiting = network('turin-pod', { cidr: '10.99.0.0/16' }, {});

describe('a Network', () => {
  test.each<[string, Network]>([
    ['reserved beside others', reserved('a', '192.168.0.0/16')],
    ['reserved over the pods', reserved('a', '10.200.0.0/24')],
    ['reserved where a peer asked and was moved', reserved('a', '10.200.0.0/16')],
    ['reserved where a peer has not been granted anything', reserved('a', '10.99.0.0/16')],
    ['movable, wherever it wants to be', network('a', { cidr: '10.71.0.0/16' }, {})],
  ])('is accepted: %s', (_, good) => expect(validateNetwork(undefined, good, [pods, peer, waiting])).toBe(allow));

  test.each<[string, Network, RegExp]>([
    [
      'reserved over a reserved one',
      reserved('b', '172.16.0.0/16'),
      /overlaps 172\.16\.0\.0\/12 of Network liqo\/a \(res/,
    ],
    [
      'reserved over what a peer was granted',
      reserved('b', '10.64.0.0/10'),
      /overlaps 10\.71\.0\.0\/16 of Network liqo\/m/,
    ],
    [
      'fixed and alone over the pods',
      network('external-cidr', { cidr: '10.200.0.0/16' }, { exact: true }),
      /spec\.cidr is 10\.200\.0\.0\/16, which overlaps 10\.200\.0\.0\/16 of Network liqo\/pod-cidr \(pod-cidr\): accepted/,
    ],
  ])('is refused: %s', (_, bad, message) => {
    const text = textOf(validateNetwork(undefined, bad, [reserved('a', '172.16.0.0/12'), pods, peer, waiting]));
    expect(text).toMatch(message);
    expect(text).toContain('(already_exists)');
  });

  test.each<[NetworkSpec, RegExp]>([
    [
      { cidr: '10.0.0.1/8' },
      /^spec\.cidr is 10\.0\.0\.1\/8, with bits set beyond the prefix: accepted is 10\.0\.0\.0\/8/,
    ],
    [{ cidr: '16.0.0.0/4' }, /prefix length of 8 to 32/],
    [{ cidr: '10.0.0.0/30', preAllocated: 5 }, /^spec\.preAllocated is 5: accepted is at most 4/],
  ])('of %j is refused', (spec, message) => {
    expect(textOf(validateNetwork(undefined, network('a', spec, {}), []))).toMatch(message);
  });
});
