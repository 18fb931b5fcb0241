import { expect, test } from 'vitest';
import type { Ip } from '#shared/schema/liqo/ip.ts';
import { type Guarded, validateIp } from './ip.ts';

const ip = (address: string, spec: object = {}): Ip =>
  ({
    apiVersion: 'ipam.liqo.io/v1alpha1',
    kind: 'IP',
    metadata: { name: 'db', namespace: 'shop' },
    spec: { ip: address, ...spec },
  }) as Ip;
const guarded: readonly Guarded[] = [
  { range: '192.0.2.11/32', what: 'Node n1' },
  { range: '10.96.0.0/12', what: 'Network liqo/service-cidr' },
];

test.each([
  ['the metadata service', '169.254.169.254', '169.254.0.0/16'],
  ['loopback', '127.0.0.1', '127.0.0.0/8'],
  ['every address', '0.0.0.0', '0.0.0.0/8'],
  ['multicast', '224.0.0.1', '224.0.0.0/3'],
  ['broadcast', '255.255.255.255', '224.0.0.0/3'],
  ['a node', '192.0.2.11', 'Node n1'],
  ['a Service', '10.96.0.1', 'service-cidr'],
])('a user cannot give %s to peers, and is told why', (_what, address, says) => {
  const verdict = validateIp(ip(address), guarded);
  expect(verdict).toMatchObject({ allowed: false, code: 'forbidden', message: expect.stringContaining(says) });
});

test('a host outside of the cluster may be given to peers, with a Service of the cluster', () => {
  expect(validateIp(ip('172.21.0.9', { serviceTemplate: { spec: { ports: [{ port: 1 }] } } }), guarded)).toMatchObject({
    allowed: true,
  });
  expect(validateIp(ip('192.0.2.12'), guarded)).toMatchObject({ allowed: true });
});

test('a user does not choose the range from which peers see an address', () => {
  const verdict = validateIp(ip('172.21.0.9', { networkRef: { name: 'internal-cidr', namespace: 'liqo' } }), guarded);
  expect(verdict).toMatchObject({ allowed: false, message: expect.stringContaining('spec.networkRef') });
});

test.each([
  ['externalIPs', { externalIPs: ['10.0.0.2'] }],
  ['type LoadBalancer', { type: 'LoadBalancer' }],
  ['type ExternalName', { type: 'ExternalName', externalName: 'x' }],
])('a Service with %s is not made on behalf of a user that may only make IPs', (says, spec) => {
  const verdict = validateIp(ip('172.21.0.9', { serviceTemplate: { spec } }), guarded);
  expect(verdict).toMatchObject({ allowed: false, message: expect.stringContaining(says) });
});

test('nor one with annotations that controllers of the cluster obey', () => {
  const of = (key: string) =>
    validateIp(ip('172.21.0.9', { serviceTemplate: { metadata: { annotations: { [key]: 'bank.example.com' } } } }), []);
  expect(of('external-dns.alpha.kubernetes.io/hostname')).toMatchObject({
    allowed: false,
    message: expect.stringContaining(
      'spec.serviceTemplate.metadata.annotations has external-dns.alpha.kubernetes.io/hostname',
    ),
  });
  expect(of('note').allowed).toBe(true);
});
