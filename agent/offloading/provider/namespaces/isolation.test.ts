/** The NetworkPolicy of guests, judged by an evaluator of its own: what a packet from here to there meets. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isWithin } from '#shared/domain/cidr.ts';
import type { Node } from '#shared/domain/kube-object.ts';
import type { Configuration } from '#shared/schema/liqo/configuration.ts';
import type { Network } from '#shared/schema/liqo/network.ts';
import { type GuestRules, safeRules } from '../guests/decide.ts';
import { isolationOf } from './isolation.ts';

interface End {
  readonly address: string;
  /** Absent: not a pod of this cluster. */
  readonly namespace?: Readonly<Record<string, string>>;
  readonly port?: number;
}

const configuration = (peer: string, pod: string, external: string): Configuration =>
  ({
    metadata: { name: peer, labels: { 'liqo.io/remote-cluster-id': peer } },
    spec: { remote: { cidr: { pod: ['10.200.0.0/16'], external: ['10.201.0.0/16'] } } },
    status: { remote: { cidr: { pod: [pod], external: [external] } } },
  }) as unknown as Configuration;
const configurations = [
  configuration('rome', '10.71.0.0/16', '10.72.0.0/16'),
  configuration('paris', '10.81.0.0/16', '10.82.0.0/16'),
  configuration('public', '203.0.113.0/24', '198.51.100.0/24'),
];
const network = { metadata: { labels: { 'ipam.liqo.io/network-type': 'pod-cidr' } }, status: { cidr: '11.0.0.0/16' } };
const nodes = [{ metadata: { name: 'n' }, spec: { podCIDRs: ['11.1.0.0/24'] } }] as unknown as Node[];
const policyOf = (rules: Partial<GuestRules> = {}, more: object = {}) =>
  isolationOf({
    consumer: 'rome',
    rules: { ...safeRules, ...rules },
    configurations,
    networks: [network as unknown as Network],
    nodes,
    ...more,
  });
type Policy = ReturnType<typeof policyOf>;
type Peer = NonNullable<Policy['egress'][number]['to'][number]>;

interface Selector {
  readonly matchLabels?: Readonly<Record<string, string>>;
  readonly matchExpressions?: readonly {
    readonly key: string;
    readonly operator: string;
    readonly values?: readonly string[];
  }[];
}

function selects(
  { matchLabels = {}, matchExpressions = [] }: Selector,
  labels: Readonly<Record<string, string>>,
): boolean {
  const byLabel = Object.entries(matchLabels).every(([key, value]) => labels[key] === value);
  return (
    byLabel &&
    matchExpressions.every(({ key, operator, values = [] }) =>
      operator === 'In' ? values.includes(labels[key] ?? '') : !(key in labels),
    )
  );
}

function matches(peer: Peer, { address, namespace }: End): boolean {
  if ('ipBlock' in peer) {
    const { cidr, except = [] } = peer.ipBlock;
    return (
      !cidr.includes(':') &&
      isWithin(`${address}/32`, [cidr]) &&
      !except.some((one) => isWithin(`${address}/32`, [one]))
    );
  }
  return namespace !== undefined && selects(peer.namespaceSelector as Selector, namespace);
}

const leaves = (policy: Policy, to: End): boolean =>
  policy.egress.some(
    (rule) =>
      (!('ports' in rule) || rule.ports === undefined || rule.ports.some(({ port }) => port === to.port)) &&
      rule.to.some((peer) => matches(peer as Peer, to)),
  );
const enters = (policy: Policy, from: End): boolean =>
  policy.ingress.some((rule) => rule.from.some((peer) => matches(peer as Peer, from)));

const ofRome = { 'liqo.io/remote-cluster-id': 'rome', 'kubernetes.io/metadata.name': 'demo-rome' };
const gatewaysOfRome = {
  'liqo.io/remote-cluster-id': 'rome',
  'liqo.io/tenant-namespace': 'true',
  'kubernetes.io/metadata.name': 'liqo-tenant-rome',
};
const ofParis = { 'liqo.io/remote-cluster-id': 'paris', 'kubernetes.io/metadata.name': 'demo-paris' };
const system = { 'kubernetes.io/metadata.name': 'kube-system' };
const shop = { 'kubernetes.io/metadata.name': 'shop' };

describe('a guest of rome', () => {
  test.each<[string, End, boolean]>([
    ['a pod of another namespace of rome', { address: '11.0.3.4', namespace: ofRome }, true],
    ['a pod of rome through the link', { address: '10.71.2.3' }, true],
    ['what rome exports, such as its API server', { address: '10.72.0.1' }, true],
    ['the DNS of the cluster', { address: '11.0.0.2', namespace: system, port: 53 }, true],
    ['the DNS cache of its node', { address: '169.254.20.10', port: 53 }, true],
    ['the internet', { address: '9.9.9.9', port: 443 }, true],
    ['a gateway of the link', { address: '11.0.3.9', namespace: gatewaysOfRome }, false],
    ['a pod of another guest', { address: '11.0.3.5', namespace: ofParis }, false],
    ['a pod of the provider', { address: '11.0.3.6', namespace: shop }, false],
    ['a pod of the provider whose node has that range', { address: '11.1.0.9', namespace: shop }, false],
    ['other ports in the namespace of DNS', { address: '11.0.0.2', namespace: system, port: 8080 }, false],
    ['the metadata service', { address: '169.254.169.254', port: 80 }, false],
    ['the metadata service at the port of DNS', { address: '169.254.169.254', port: 53 }, false],
    ['the network of the provider', { address: '192.168.1.10', port: 22 }, false],
    ['pods of another peer through its link', { address: '10.81.0.1' }, false],
    ['pods of another peer with a public range', { address: '203.0.113.7' }, false],
  ])('reaches %s: %j, %s', (_, to, expected) => {
    expect(leaves(policyOf(), to)).toBe(expected);
  });

  test.each<[string, End, boolean]>([
    ['a pod of rome here', { address: '11.0.3.4', namespace: ofRome }, true],
    ['a pod of rome through the link', { address: '10.71.2.3' }, true],
    ['an ingress controller of the provider', { address: '11.0.9.9', namespace: shop }, true],
    ['a load balancer or a node', { address: '192.168.1.10' }, true],
    ['a guest of another consumer', { address: '11.0.3.5', namespace: ofParis }, false],
    ['pods of another peer through its link', { address: '10.81.0.1' }, false],
  ])('is reached by %s: %j, %s', (_, from, expected) => {
    expect(enters(policyOf(), from)).toBe(expected);
  });

  test('talks with the pods of a third cluster when the policy names it', () => {
    const policy = policyOf({ networkPeers: ['paris'] });
    expect(leaves(policy, { address: '10.81.0.1' })).toBe(true);
    expect(enters(policy, { address: '10.81.0.1' })).toBe(true);
  });

  test('reaches private networks when the policy closes less, and still neither pods of the provider nor other peers', () => {
    const policy = policyOf({ closedRanges: ['169.254.0.0/16'] });
    expect(leaves(policy, { address: '192.168.1.10' })).toBe(true);
    expect(leaves(policy, { address: '11.0.3.6', namespace: shop })).toBe(false);
    expect(leaves(policy, { address: '10.81.0.1' })).toBe(false);
  });

  test('reaches only its consumer and DNS when the policy closes everything', () => {
    const policy = policyOf({ closedRanges: ['0.0.0.0/0'] });
    expect(leaves(policy, { address: '9.9.9.9' })).toBe(false);
    expect(leaves(policy, { address: '10.71.2.3' })).toBe(true);
    // An empty list of peers would mean every one.
    expect(policy.egress.every(({ to }) => to.length > 0)).toBe(true);
  });

  test('has no way out by IPv6 where the pod ranges are not known, and one without them where they are', () => {
    expect(JSON.stringify(policyOf())).not.toContain('::/0');
    const dual = [
      { metadata: { name: 'n' }, spec: { podCIDRs: ['11.1.0.0/24', 'fd00:10::/64'] } },
    ] as unknown as Node[];
    const text = JSON.stringify(policyOf({}, { nodes: dual }));
    expect(text).toContain('{"cidr":"::/0","except":["fc00::/7","fd00:10::/64","fe80::/10"]}');
  });

  test('is kept from link-local addresses and from pods of others, whichever they are', () => {
    const octet = fc.integer({ min: 0, max: 255 });
    const policy = policyOf();
    fc.assert(
      fc.property(octet, octet, octet, (a, b, c) => {
        expect(leaves(policy, { address: `169.254.${a}.${b}`, port: 80 })).toBe(false);
        expect(leaves(policy, { address: `11.0.${a}.${b}`, namespace: c % 2 ? ofParis : shop, port: 80 })).toBe(false);
        expect(leaves(policy, { address: `10.71.${a}.${b}` })).toBe(true);
      }),
    );
  });

  test('reaches no port of the agent, which stands among the pods of the provider, even where their range is a private one that nothing names', () => {
    const octet = fc.integer({ min: 0, max: 255 });
    // Health, metrics, webhooks, the proxy and the front door, kubelet APIs, and the port of DNS.
    const port = fc.constantFrom(53, 8080, 8443, 9443, 443, 8118, 8119, 11_250, 11_262);
    const agent = { 'kubernetes.io/metadata.name': 'liqo' };
    const known = policyOf();
    const unknown = policyOf({}, { networks: [], nodes: [] });
    fc.assert(
      fc.property(octet, octet, port, (a, b, at) => {
        for (const range of ['11.0', '11.1.0'])
          expect(
            leaves(known, {
              address: `${range}.${a}.${b}`.split('.').slice(0, 4).join('.'),
              namespace: agent,
              port: at,
            }),
          ).toBe(false);
        for (const range of ['10.244', '172.16', '192.168', '100.64'])
          expect(leaves(unknown, { address: `${range}.${a}.${b}`, namespace: agent, port: at })).toBe(false);
      }),
    );
  });

  test('reaches the agent where the policy of the provider takes its isolation away or opens its ranges', () => {
    const agent = { address: '10.244.0.7', namespace: { 'kubernetes.io/metadata.name': 'liqo' }, port: 9443 };
    expect(leaves(policyOf({ closedRanges: ['169.254.0.0/16'] }, { networks: [], nodes: [] }), agent)).toBe(true);
  });
});
