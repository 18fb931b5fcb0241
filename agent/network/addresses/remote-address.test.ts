import { expect, test } from 'vitest';
import type { Configuration } from '#shared/schema/liqo/configuration.ts';
import type { Network } from '#shared/schema/liqo/network.ts';
import { isOutside, reachedAt, remoteRanges, takenBy, unlinkedRanges } from './remote-address.ts';

const real = { pod: ['10.50.0.0/16', '10.60.0.0/20'], external: ['10.68.0.0/16'] };
const configuration = (views?: { pod: string[]; external: string[] }): Configuration =>
  ({
    spec: { remote: { cidr: real } },
    ...(views ? { status: { remote: { cidr: views } } } : {}),
  }) as unknown as Configuration;
const granted = configuration({ pod: ['10.51.0.0/16', '10.60.0.0/20'], external: ['10.70.0.0/16'] });

test.each([
  ['a pod, in a range that has another name here', '10.50.255.254', '10.51.255.254'],
  ['a pod, in a range that keeps its name', '10.60.15.7', '10.60.15.7'],
  ['an exposed host', '10.68.0.1', '10.70.0.1'],
])('%s is reached at an address of this cluster', (_, address, expected) => {
  expect(reachedAt(remoteRanges(granted), address)).toBe(expected);
});

test.each([
  ['a pod in the network of its node', '198.18.2.11'],
  ['what follows a range', '10.60.16.0'],
  ['what another peer is called here', '10.51.0.1'],
  ['an address of IPv6', 'fd00::7'],
  ['a name', 'metadata.internal'],
])('%s is in no range of the peer and not reached', (_, address) => {
  expect(reachedAt(remoteRanges(granted), address)).toBeUndefined();
  expect(isOutside(remoteRanges(granted), address)).toBe(true);
});

test('an address in a range that is not mapped here yet is not given out: another cluster may own it', () => {
  const ranges = remoteRanges(configuration());
  expect([reachedAt(ranges, '10.50.0.4'), reachedAt(ranges, '10.68.0.1')]).toEqual([undefined, undefined]);
  const half = remoteRanges(configuration({ pod: ['', '10.60.0.0/20'], external: [] }));
  expect([reachedAt(half, '10.50.0.4'), reachedAt(half, '10.60.0.4')]).toEqual([undefined, '10.60.0.4']);
});

const network = (name: string, cidr: string | undefined, type?: string): Network =>
  ({
    metadata: { namespace: 'liqo', name, labels: type === undefined ? {} : { 'ipam.liqo.io/network-type': type } },
    spec: { cidr: '10.9.0.0/16' },
    status: cidr === undefined ? {} : { cidr },
  }) as unknown as Network;
const all = [
  network('pod-cidr', '10.50.0.0/16', 'pod-cidr'),
  network('service-cidr', '10.96.0.0/12', 'service-cidr'),
  network('other-peer', '10.71.0.0/16'),
  network('vpc', '10.60.0.0/16', 'reserved'),
  network('not-granted', undefined, 'external-cidr'),
];
const unlinked = unlinkedRanges(all, ['10.0.0.0/8']);

test.each([
  ['of a pod here', '10.50.255.255', 'Network liqo/pod-cidr'],
  ['of a Service here', '10.100.0.1', 'Network liqo/service-cidr'],
  ['by which another peer is known here', '10.71.0.0', 'Network liqo/other-peer'],
])('without a link an address %s is not given out, and it is said whose it is', (_, address, holder) => {
  expect(reachedAt(unlinked, address)).toBeUndefined();
  expect(takenBy(unlinked, address)?.holder).toBe(holder);
});

test.each([
  ['is unused', '10.51.0.0'],
  ['of a range that is only reserved', '10.60.0.1'],
  ['of a range that was not granted', '10.9.0.1'],
])('without a link an address %s stays what it is where a policy says that the networks are one', (_, address) => {
  expect(reachedAt(unlinked, address)).toBe(address);
  expect(reachedAt(unlinkedRanges(all), address)).toBeUndefined();
  expect(takenBy(unlinked, address)).toBeUndefined();
});

test('with a link nothing is taken: addresses have names of their own', () => {
  expect(takenBy(remoteRanges(granted), '10.50.0.4')).toBeUndefined();
});
