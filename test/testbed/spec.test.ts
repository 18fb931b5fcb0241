import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  differsFrom,
  internetAddress,
  nodeAddress,
  type OtherCni,
  parseRange,
  planCluster,
  slotCount,
  slotRange,
} from './spec.ts';

const toNumber = (ip: string): number => ip.split('.').reduce((sum, part) => sum * 256 + Number(part), 0);
const contains = (range: string, ip: string): boolean => {
  const { first, prefix } = parseRange(range) ?? { first: -1, prefix: 32 };
  return toNumber(ip) >= first && toNumber(ip) < first + 2 ** (32 - prefix);
};
const slots = fc.integer({ min: 0, max: slotCount - 1 });
const indexes = fc.integer({ min: 1, max: 15 });

describe('the plan of a cluster', () => {
  test('gives the defaults of the first cluster of the first bed', () => {
    const plan = planCluster(0, 1, { name: 'rome' });
    expect(plan).toMatchObject({
      podCidr: '10.1.0.0/16',
      serviceCidr: '10.101.0.0/16',
      serviceIp: '10.101.0.1',
      dnsIp: '10.101.0.10',
    });
    expect(plan.nodes).toEqual([{ name: 'rome-1', ip: '198.18.1.11', podCidr: '10.1.0.0/24', link: 'c1n1' }]);
  });

  test('never gives one address to two nodes of a machine, and keeps each inside its bed', () => {
    const place = fc.record({ slot: slots, index: indexes });
    fc.assert(
      fc.property(fc.uniqueArray(place, { selector: ({ slot, index }) => `${slot}/${index}` }), (places) => {
        const plans = places.map(({ slot, index }) => ({
          slot,
          plan: planCluster(slot, index, { name: 'a', nodes: 3 }),
        }));
        const addresses = plans.flatMap(({ plan }) => [plan.gateway, ...plan.nodes.map(({ ip }) => ip)]);
        expect(new Set(addresses).size).toBe(addresses.length);
        for (const { slot, plan } of plans) {
          for (const { ip } of plan.nodes) expect(contains(slotRange(slot), ip)).toBe(true);
          expect(contains('198.18.0.0/15', plan.gateway)).toBe(true);
        }
      }),
    );
  });

  test('gives each node a range of its own inside the pod range', () => {
    fc.assert(
      fc.property(
        indexes,
        fc.integer({ min: 8, max: 22 }),
        fc.integer({ min: 0, max: 255 }),
        (index, prefix, octet) => {
          const first = Math.floor((10 * 256 ** 3 + octet * 256 ** 2) / 2 ** (32 - prefix)) * 2 ** (32 - prefix);
          const podCidr = `${[24, 16, 8, 0].map((shift) => Math.floor(first / 2 ** shift) % 256).join('.')}/${prefix}`;
          const { nodes } = planCluster(0, index, { name: 'a', nodes: 3, podCidr, serviceCidr: '172.20.0.0/16' });
          expect(new Set(nodes.map((node) => node.podCidr)).size).toBe(3);
          for (const node of nodes) expect(contains(podCidr, node.podCidr?.replace('/24', '') ?? '')).toBe(true);
        },
      ),
    );
  });

  test.each([
    { request: { name: 'Rome' }, says: 'the cluster name "Rome" is not usable' },
    { request: { name: 'a/b' }, says: 'not usable' },
    { request: { name: '' }, says: 'not usable' },
    { request: { name: 'rome', nodes: 0 }, says: 'nodes is 0: a whole number from 1 to 3' },
    { request: { name: 'rome', nodes: 4 }, says: 'nodes is 4' },
    { request: { name: 'rome', nodes: 1.5 }, says: 'nodes is 1.5' },
    { request: { name: 'rome', podCidr: '10.1.2.0/16' }, says: 'podCidr of rome is "10.1.2.0/16"' },
    { request: { name: 'rome', podCidr: '10.1.0.0/24' }, says: 'prefix from /8 to /22' },
    { request: { name: 'rome', podCidr: '300.1.0.0/16' }, says: 'podCidr of rome' },
    { request: { name: 'rome', podCidr: '10.0.0.0/8' }, says: 'overlap' },
    { request: { name: 'rome', serviceCidr: '198.18.0.0/16' }, says: 'overlap' },
    {
      request: { name: 'rome', cni: 'calico' as OtherCni },
      says: 'cni is "calico": flannel-host-gw, flannel-vxlan, vpc are accepted, and none for the bed\'s bridge',
    },
  ])('refuses $request', ({ request, says }) => {
    expect(() => planCluster(0, 1, request)).toThrow(says);
  });
});

test('a host has an address in the network that joins it and the internet', () => {
  expect([internetAddress(0, 0, 2), internetAddress(1, 0, 2), internetAddress(31, 15, 11)]).toEqual([
    '198.18.0.2',
    '198.18.16.2',
    '198.19.255.11',
  ]);
});

test('a cluster that exists differs only from a request that says otherwise', () => {
  const existing = planCluster(0, 1, { name: 'rome', nodes: 2 });
  expect(differsFrom(existing, { name: 'rome' })).toBeUndefined();
  expect(differsFrom(existing, { name: 'rome', nodes: 2, podCidr: '10.1.0.0/16' })).toBeUndefined();
  expect(differsFrom(existing, { name: 'rome', podCidr: '10.9.0.0/16' })).toMatch(
    /podCidr 10\.1\.0\.0\/16, asked for 10\.9/,
  );
});

test('how often its control plane collects garbage and what its API server is told belong to what a cluster is', () => {
  const sparing = planCluster(0, 1, { name: 'rome', gcPercent: 800 });
  expect(sparing.gcPercent).toBe(800);
  expect(differsFrom(sparing, { name: 'rome', gcPercent: 800 })).toBeUndefined();
  expect(differsFrom(sparing, { name: 'rome', gcPercent: 100 })).toMatch('gcPercent 800, asked for 100');
  expect(differsFrom(planCluster(0, 1, { name: 'rome' }), { name: 'rome', gcPercent: 800 })).toMatch('gcPercent 400');
  const unfair = planCluster(0, 1, { name: 'rome', apiServerFlags: ['--enable-priority-and-fairness=false'] });
  expect(differsFrom(unfair, { name: 'rome', apiServerFlags: [] })).toMatch('--enable-priority-and-fairness=false');
  expect(differsFrom(unfair, { name: 'rome' })).toBeUndefined();
  expect(() => planCluster(0, 1, { name: 'rome', gcPercent: 0 })).toThrow(/gcPercent is 0: .* from 10 to 10000/);
});

test('how long its kubelets wait at most before they start a container again belongs to what a cluster is', () => {
  const eager = planCluster(0, 1, { name: 'rome', restartDelaySeconds: 5 });
  expect(eager.restartDelaySeconds).toBe(5);
  expect(differsFrom(eager, { name: 'rome', restartDelaySeconds: 5 })).toBeUndefined();
  expect(differsFrom(eager, { name: 'rome', restartDelaySeconds: 300 })).toMatch(
    'restartDelaySeconds 5, asked for 300',
  );
  expect(differsFrom(planCluster(0, 1, { name: 'rome' }), { name: 'rome', restartDelaySeconds: 5 })).toMatch(
    'restartDelaySeconds 300',
  );
  for (const wrong of [0, 301, 1.5]) {
    expect(() => planCluster(0, 1, { name: 'rome', restartDelaySeconds: wrong })).toThrow(
      `restartDelaySeconds is ${wrong}: a whole number from 1 to 300`,
    );
  }
});

test('how much storage its nodes have is a whole number, of a cluster with storage', () => {
  const large = planCluster(0, 1, { name: 'rome', storage: true, storageGiB: 32 });
  expect(differsFrom(large, { name: 'rome', storageGiB: 8 })).toMatch('storageGiB 32, asked for 8');
  expect(differsFrom(large, { name: 'rome', storage: true })).toBeUndefined();
  for (const wrong of [{ storageGiB: 8 }, { storage: true, storageGiB: 0.3 }, { storage: true, storageGiB: 0 }])
    expect(() => planCluster(0, 1, { name: 'rome', ...wrong })).toThrow('a whole number above 0');
});

test('which CNI it has belongs to what a cluster is', () => {
  const existing = planCluster(0, 1, { name: 'rome', cni: 'flannel-vxlan' });
  expect(differsFrom(existing, { name: 'rome' })).toBeUndefined();
  expect(differsFrom(existing, { name: 'rome', cni: 'vpc' })).toMatch('cni flannel-vxlan, asked for vpc');
  expect(differsFrom(planCluster(0, 1, { name: 'rome' }), { name: 'rome', cni: 'vpc' })).toMatch("of the bed's bridge");
});

test('nodes and pods of a VPC of any range share one subnet and no address; clusters of one range differ in the internet only', () => {
  fc.assert(
    fc.property(indexes, fc.integer({ min: 8, max: 22 }), fc.integer({ min: 0, max: 255 }), (index, prefix, octet) => {
      const first = Math.floor((10 * 256 ** 3 + octet * 256 ** 2) / 2 ** (32 - prefix)) * 2 ** (32 - prefix);
      const podCidr = `${[24, 16, 8, 0].map((shift) => Math.floor(first / 2 ** shift) % 256).join('.')}/${prefix}`;
      const request = { name: 'a', nodes: 3, podCidr, serviceCidr: '172.20.0.0/16', cni: 'vpc' } as const;
      const { nodes } = planCluster(0, index, request);
      const interfaces = nodes.flatMap(({ vpc }) => vpc?.interfaces ?? []);
      const addresses = interfaces.flatMap(({ address, secondary }) => [address, ...secondary]);
      const subnet = podCidr.replace(/\/\d+$/, '/24');
      expect(interfaces).toHaveLength(6);
      expect(addresses.filter((address) => !contains(subnet, address))).toEqual([]);
      expect(new Set(addresses).size).toBe(addresses.length);
      expect(addresses.some((address) => /\.(0|1|255)$/.test(address))).toBe(false);
      const other = planCluster(0, (index % 15) + 1, request).nodes;
      expect(other.map(nodeAddress)).toEqual(nodes.map(nodeAddress));
      expect(other.map(({ ip }) => ip)).not.toEqual(nodes.map(({ ip }) => ip));
    }),
  );
});
