import { expect, test } from 'vitest';
import type { Configuration } from '#shared/schema/liqo/configuration.ts';
import { reachedAt, remoteRanges } from './remote-address.ts';

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
  ['a pod in the network of its node', '198.18.2.11', '198.18.2.11'],
  ['what follows a range', '10.60.16.0', '10.60.16.0'],
  ['an address of IPv6', 'fd00::7', 'fd00::7'],
])('%s is reached at an address of this cluster', (_, address, expected) => {
  expect(reachedAt(remoteRanges(granted), address)).toBe(expected);
});

test('an address in a range that has no name here yet is not given out: it may belong to somebody else', () => {
  const ranges = remoteRanges(configuration());
  expect([reachedAt(ranges, '10.50.0.4'), reachedAt(ranges, '10.68.0.1')]).toEqual([undefined, undefined]);
  const half = remoteRanges(configuration({ pod: ['', '10.60.0.0/20'], external: [] }));
  expect([reachedAt(half, '10.50.0.4'), reachedAt(half, '10.60.0.4')]).toEqual([undefined, '10.60.0.4']);
});

test('without a link addresses stay what they are', () => {
  expect(reachedAt(remoteRanges(undefined), '10.50.0.4')).toBe('10.50.0.4');
});
