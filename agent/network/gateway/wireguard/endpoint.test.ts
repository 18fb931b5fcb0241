/** Where a gateway can be reached, as tables: docs/design/networking.md#where-can-a-gateway-be-reached. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Service } from '#shared/domain/core-kinds.ts';
import type { Node } from '#shared/domain/kube-object.ts';
import { candidateOf, discoverEndpoint, type EndpointFacts, parseCandidate } from './endpoint.ts';

type Address = readonly [type: string, address: string];
const node = (name: string, addresses: readonly Address[], ready = true): Node =>
  ({
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name },
    status: {
      addresses: addresses.map(([type, address]) => ({ type, address })),
      conditions: [{ type: 'Ready', status: ready ? 'True' : 'False' }],
    },
  }) as Node;
const service = (type: string, spec: object = {}, status: object = {}): Service =>
  ({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'gw-p' },
    spec: { type, ports: [{ port: 51_840, protocol: 'UDP', nodePort: 30_840 }], ...spec },
    status,
  }) as Service;

const n1 = node('n1', [
  ['InternalIP', '10.0.0.1'],
  ['Hostname', 'n1'],
]);
const n2 = node('n2', [
  ['InternalIP', '10.0.0.2'],
  ['ExternalIP', '203.0.113.2'],
]);
const down = node('n3', [['InternalIP', '10.0.0.3']], false);
const nameless = node('n4', [['InternalIP', '']]);
const found = (facts: Partial<EndpointFacts>): string => {
  const all = {
    service: undefined,
    nodes: [n2, n1, down, nameless],
    activeNode: undefined,
    literal: undefined,
    ...facts,
  };
  const result = discoverEndpoint(all);
  return 'reason' in result
    ? result.reason
    : `${result.endpoint.addresses?.join(' ')} : ${result.endpoint.port} | ${result.candidates.join(' ')}`;
};
const ingress = (...all: object[]) => ({ loadBalancer: { ingress: all } });

describe('a gateway is reached at', () => {
  test.each<readonly [string, Partial<EndpointFacts>, string]>([
    ['no Service yet', {}, 'ServiceMissing'],
    [
      'every ready node that has an address',
      { service: service('NodePort') },
      '10.0.0.1 203.0.113.2 : 30840 | 10.0.0.1:30840 203.0.113.2:30840',
    ],
    [
      'the node of the active pod first',
      { service: service('NodePort'), activeNode: 'n2' },
      '203.0.113.2 10.0.0.1 : 30840 | 203.0.113.2:30840 10.0.0.1:30840',
    ],
    [
      'that node alone where only it answers',
      { service: service('NodePort', { externalTrafficPolicy: 'Local' }), activeNode: 'n1' },
      '10.0.0.1 : 30840 | 10.0.0.1:30840',
    ],
    ['no node where none answers', { service: service('NodePort', { externalTrafficPolicy: 'Local' }) }, 'NoActivePod'],
    ['no node when none is ready', { service: service('NodePort'), nodes: [down] }, 'NoReadyNode'],
    ['never an empty address', { service: service('NodePort'), nodes: [nameless] }, 'NoReadyNode'],
    [
      'no node port yet',
      { service: service('NodePort', { ports: [{ port: 51_840, protocol: 'UDP' }] }) },
      'NoNodePort',
    ],
    ['a load balancer without address', { service: service('LoadBalancer') }, 'NoLoadBalancerAddress'],
    [
      'a load balancer, its nodes behind it',
      {
        service: service('LoadBalancer', {}, ingress({ ip: '198.51.100.7' }, { hostname: 'lb.example.com' })),
        nodes: [n1],
      },
      '198.51.100.7 lb.example.com : 51840 | 198.51.100.7:51840 lb.example.com:51840 10.0.0.1:30840',
    ],
    [
      'its cluster IPs',
      { service: service('ClusterIP', { clusterIPs: ['10.96.0.7', 'fd00::7'] }) },
      '10.96.0.7 fd00::7 : 51840 | 10.96.0.7:51840 [fd00::7]:51840',
    ],
    ['no cluster IP', { service: service('ClusterIP', { clusterIPs: ['None'] }) }, 'NoClusterIP'],
    ['no external name', { service: service('ExternalName') }, 'ServiceTypeWithoutEndpoint'],
    [
      'the written endpoint, independent of the Service',
      { service: service('LoadBalancer'), literal: 'gw.example.com:4500, 203.0.113.1:4500,[2001:db8::1]:4501' },
      'gw.example.com 203.0.113.1 : 4500 | gw.example.com:4500 203.0.113.1:4500 [2001:db8::1]:4501',
    ],
    ['nothing that is no endpoint', { literal: '203.0.113.1' }, 'EndpointInvalid'],
    ['nothing that is empty', { literal: ' ' }, 'EndpointInvalid'],
    ['no port 0', { literal: 'a:0' }, 'EndpointInvalid'],
  ])('%s', (_what, facts, expected) => expect(found(facts)).toBe(expected));

  test('at most eight addresses, of which the active node is one', () => {
    const many = Array.from({ length: 200 }, (_, i) =>
      node(`m${String(i).padStart(3, '0')}`, [['InternalIP', `10.1.0.${i}`]]),
    );
    const addresses = found({ service: service('NodePort'), nodes: many, activeNode: 'm150' })
      .split(' : ')[0]
      ?.split(' ');
    expect(addresses).toHaveLength(8);
    expect(addresses?.[0]).toBe('10.1.0.150');
  });
});

test('candidates are read as they are written', () => {
  const hosts = fc.oneof(fc.ipV4(), fc.ipV6(), fc.domain());
  fc.assert(
    fc.property(hosts, fc.integer({ min: 1, max: 65_535 }), (address, port) => {
      expect(parseCandidate(candidateOf(address, port))).toEqual({ address, port });
    }),
  );
});

test('the order in which nodes are listed does not matter', () => {
  const all = [n1, n2, down, nameless];
  fc.assert(
    fc.property(fc.shuffledSubarray(all, { minLength: all.length }), (nodes) => {
      expect(found({ service: service('NodePort'), nodes, activeNode: 'n2' })).toBe(
        found({ service: service('NodePort'), nodes: all, activeNode: 'n2' }),
      );
    }),
  );
});
