import { expect, test } from 'vitest';
import { apiVersionOf, type Node } from '#shared/domain/kube-object.ts';
import type { Network } from '#shared/schema/liqo/network.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import { Ipam } from '../ipam/ipam.ts';
import { nodeRanges, requestOf, reservationOrder } from './cluster-ipam.ts';

const network = (name: string, type: string | undefined, cidr: string, granted?: string): Network => ({
  apiVersion: apiVersionOf(networkKinds.networks),
  kind: 'Network',
  metadata: {
    name,
    namespace: 'liqo',
    ...(type === undefined
      ? {}
      : { labels: { 'ipam.liqo.io/network-type': type }, annotations: { 'liqo.io/preinstalled': 'true' } }),
  },
  spec: { cidr },
  ...(granted === undefined ? {} : { status: { cidr: granted } }),
});

test('at start, what was granted is kept, then the installation takes its own ranges, and peers wait', () => {
  const all = [
    network('new-peer', undefined, '10.70.0.0/16'),
    network('internal', 'internal-cidr', '10.70.0.0/16'),
    network('external', 'external-cidr', '10.70.0.0/16'),
    network('reserved', 'reserved', '10.70.0.0/24'),
    network('services', 'service-cidr', '10.96.0.0/12'),
    network('odd', 'something-else', '10.201.0.0/16'),
    network('pods', 'pod-cidr', '10.200.0.0/16'),
    network('peer', undefined, '10.200.0.0/16', '10.71.0.0/16'),
  ];
  expect(reservationOrder(all).map(({ metadata }) => metadata.name)).toEqual([
    'peer',
    'pods',
    'services',
    'reserved',
    'external',
    'internal',
    'odd',
  ]);
  const ipam = new Ipam();
  for (const one of [...reservationOrder(all), all[0] as Network]) ipam.grantPrefix(requestOf(one));
  // What an administrator reserved is there before what may be moved.
  expect(ipam.prefixOf('Network liqo/reserved')).toBe('10.70.0.0/24');
  expect(ipam.prefixOf('Network liqo/external')).not.toBe('10.70.0.0/16');
  expect(ipam.prefixOf('Network liqo/peer')).toBe('10.71.0.0/16');
  expect(ipam.prefixOf('Network liqo/internal')).not.toBe('10.70.0.0/16');
});

test.each([
  [
    {
      status: {
        addresses: [
          { type: 'InternalIP', address: '192.0.2.1' },
          { type: 'Hostname', address: 'n1' },
        ],
      },
    },
    ['192.0.2.1/32'],
  ],
  [{ spec: { podCIDR: '10.1.0.0/24' } }, ['10.1.0.0/24']],
  [{ spec: { podCIDR: '10.1.0.0/24', podCIDRs: ['10.1.0.0/24', 'fd00::/64'] } }, ['10.1.0.0/24', 'fd00::/64']],
])('a node takes its addresses and the range of its pods: %j', (fields, ranges) => {
  expect(nodeRanges(fields as unknown as Node)).toEqual(ranges);
});
