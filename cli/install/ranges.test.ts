import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Network } from '#shared/schema/liqo/network.ts';
import { networkManifests } from './network-manifests.ts';
import {
  type ClusterRanges,
  collide,
  externalCidrFor,
  findPodCidrs,
  findServiceCidr,
  type RangeFacts,
  rangeFault,
} from './ranges.ts';
import { type NetworkFlags, settleRanges } from './read-ranges.ts';

const nothing: RangeFacts = { nodePodCidrs: [], nodeAddresses: [], cniPools: [], arguments: [], serviceCidrs: [] };
const facts = (some: Partial<RangeFacts>): RangeFacts => ({ ...nothing, ...some });
const kubeadm =
  'networking:\n  dnsDomain: cluster.local\n  podSubnet: 10.244.0.0/16,fd00::/56\n  serviceSubnet: "10.97.0.0/16"\n';

describe('the range of the pods', () => {
  test.each<[string, Partial<RangeFacts>, readonly string[], RegExp]>([
    [
      'pools of the CNI',
      { cniPools: ['192.168.0.0/16', '172.20.0.0/16'], kubeadm },
      ['192.168.0.0/16', '172.20.0.0/16'],
      /CNI/,
    ],
    ['kubeadm', { kubeadm, nodePodCidrs: ['10.244.1.0/24'] }, ['10.244.0.0/16'], /kubeadm-config/],
    [
      'the controller manager',
      { arguments: ['kube-controller-manager', '--cluster-cidr=10.1.0.0/16'] },
      ['10.1.0.0/16'],
      /--cluster-cidr/,
    ],
    ['kube-proxy', { kubeProxy: 'clusterCIDR: 10.2.0.0/16\n' }, ['10.2.0.0/16'], /kube-proxy/],
    ['two nodes, with room for more', { nodePodCidrs: ['10.200.1.0/24', '10.200.2.0/24'] }, ['10.200.0.0/16'], /nodes/],
    ['one node', { nodePodCidrs: ['10.200.7.0/24'] }, ['10.200.0.0/16'], /nodes/],
    [
      'nodes beside the Services',
      { nodePodCidrs: ['10.0.1.0/24'], serviceCidrs: ['10.0.128.0/17'] },
      ['10.0.0.0/17'],
      /nodes/,
    ],
    [
      'nodes among the addresses of nodes',
      { nodePodCidrs: ['10.0.2.0/24'], nodeAddresses: ['10.0.0.5'] },
      ['10.0.2.0/23'],
      /nodes/,
    ],
    [
      'nodes far apart',
      { nodePodCidrs: ['10.0.0.0/24', '192.168.0.0/24'] },
      ['10.0.0.0/24', '192.168.0.0/24'],
      /nodes/,
    ],
  ])('is known by %s', (_, some, cidrs, source) => {
    const found = findPodCidrs(facts(some));
    expect(found).toMatchObject({ cidrs, source: expect.stringMatching(source) });
    expect(found?.guess === true).toBe(/nodes'/.test(found?.source ?? ''));
  });

  test('is not made up', () => expect(findPodCidrs(facts({ cniPools: ['nonsense', 'fd00::/64'] }))).toBeUndefined());
});

describe('the range of the Services', () => {
  test.each<[string, Partial<RangeFacts>, string]>([
    ['ServiceCIDR objects', { serviceCidrs: ['fd00::/112', '10.96.0.0/16'], kubeadm }, '10.96.0.0/16'],
    ['kubeadm', { kubeadm }, '10.97.0.0/16'],
    ['the API server', { arguments: ['--service-cluster-ip-range=10.3.0.0/16,fd00::/112'] }, '10.3.0.0/16'],
    ['the usual address', { kubernetesService: '10.96.0.1' }, '10.96.0.0/12'],
    ['the first address of a /16', { kubernetesService: '10.43.0.1' }, '10.43.0.0/16'],
    ['an address inside', { kubernetesService: '172.20.5.1' }, '172.20.5.0/24'],
  ])('is known by %s', (_, some, cidr) => expect(findServiceCidr(facts(some))?.cidrs).toEqual([cidr]));

  test('is not made up', () => expect(findServiceCidr(nothing)).toBeUndefined());
});

const range = fc
  .tuple(fc.integer({ min: 0, max: 255 }), fc.constantFrom(12, 16))
  .map(([second, length]) => `10.${length === 12 ? second - (second % 16) : second}.0.0/${length}`);

describe('the range for peers', () => {
  test('collides with nothing that is known, as long as there is room, and is always the same', () => {
    fc.assert(
      fc.property(fc.string(), fc.array(range, { maxLength: 8 }), (clusterId, taken) => {
        const chosen = externalCidrFor(clusterId, taken);
        expect(taken.filter((other) => collide(chosen, other))).toEqual([]);
        expect(externalCidrFor(clusterId, taken)).toBe(chosen);
      }),
    );
  });

  test('is another one for nearly every cluster, and no popular default', () => {
    const all = Array.from({ length: 40 }, (_, i) => externalCidrFor(`cluster-${i}`, []));
    expect(new Set(all).size).toBeGreaterThan(30);
    for (const popular of ['10.96.0.0/12', '10.244.0.0/16', '10.42.0.0/16', '10.80.0.0/16', '10.0.0.0/16'])
      expect(all.filter((one) => collide(one, popular))).toEqual([]);
  });
});

const good: ClusterRanges = {
  podCidrs: ['10.200.0.0/16'],
  serviceCidr: '10.96.0.0/12',
  externalCidr: '10.70.0.0/16',
  internalCidr: '10.80.0.0/16',
  reservedSubnets: ['192.168.0.0/16', '10.200.0.0/24'],
  fixed: { external: false, internal: false },
};

describe('ranges together', () => {
  test('may be reserved where pods are', () => expect(rangeFault(good)).toBeUndefined());

  test.each<[Partial<ClusterRanges>, string, RegExp]>([
    [{ podCidrs: ['10.0.0.1/16'] }, 'pod-cidr', /accepted is 10\.0\.0\.0\/16/],
    [{ serviceCidr: 'ten' }, 'service-cidr', /accepted is an IPv4 range/],
    [{ podCidrs: ['10.1.0.0/16', '10.1.2.0/24'] }, 'pod-cidr', /overlaps --pod-cidr 10\.1\.0\.0\/16/],
    [{ reservedSubnets: ['172.16.0.0/12', '172.20.0.0/16'] }, 'reserved-subnet', /overlaps --reserved-subnet 172\.16/],
    [{ externalCidr: '10.200.1.0/24' }, 'external-cidr', /overlaps --pod-cidr 10\.200\.0\.0\/16/],
    [{ internalCidr: '10.70.0.0/24' }, 'internal-cidr', /overlaps --external-cidr/],
  ])('%j are refused', (some, flag, problem) => {
    expect(rangeFault({ ...good, ...some })).toMatchObject({ flag, problem: expect.stringMatching(problem) });
  });

  test('become Networks that IPAM grants as they are, except those that may move', () => {
    const labels = networkManifests({ ...good, reservedSubnets: ['192.168.0.0/16'] }).map(({ metadata, spec }) => [
      metadata.name,
      spec.cidr,
      Object.keys(metadata.labels ?? {}).filter((key) => key.startsWith('ipam.liqo.io/network-')).length,
      metadata.annotations,
    ]);
    const annotations = { 'liqo.io/preinstalled': 'true' };
    expect(labels).toEqual([
      ['pod-cidr', '10.200.0.0/16', 3, annotations],
      ['service-cidr', '10.96.0.0/12', 3, annotations],
      ['reserved-192-168-0-0-16', '192.168.0.0/16', 3, annotations],
      ['external-cidr', '10.70.0.0/16', 1, annotations],
      ['internal-cidr', '10.80.0.0/16', 1, annotations],
    ]);
    const fixed = networkManifests({ ...good, fixed: { external: true, internal: false } });
    expect(fixed.find(({ metadata }) => metadata.name === 'external-cidr')?.metadata.labels).toMatchObject({
      'ipam.liqo.io/network-not-remapped': 'true',
    });
    const two = networkManifests({ ...good, podCidrs: ['10.1.0.0/16', '10.2.0.0/16'] });
    expect(two.slice(0, 2).map(({ metadata }) => metadata.name)).toEqual([
      'pod-cidr-10-1-0-0-16',
      'pod-cidr-10-2-0-0-16',
    ]);
  });
});

describe('settling', () => {
  const flags: NetworkFlags = { podCidr: [], reservedSubnet: [] };
  const known = facts({ kubeadm, nodeAddresses: ['192.0.2.1'] });
  const settle = (some: Partial<NetworkFlags>, installed: readonly Network[] = [], from = known) =>
    settleRanges('rome', { ...flags, ...some }, from, installed);

  test('takes what is found, and says where', () => {
    const { ranges, notes } = settle({});
    expect(ranges).toMatchObject({
      podCidrs: ['10.244.0.0/16'],
      serviceCidr: '10.97.0.0/16',
      internalCidr: '10.80.0.0/16',
    });
    expect(ranges.externalCidr).toBe(externalCidrFor('rome', []));
    expect(notes.join()).toMatch(/pods: 10\.244\.0\.0\/16 \(ConfigMap kube-system\/kubeadm-config\)/);
  });

  test('takes what a person says, fixed', () => {
    const { ranges } = settle({
      podCidr: ['10.9.0.0/16'],
      externalCidr: '10.71.0.0/16',
      reservedSubnet: ['172.16.0.0/12'],
    });
    expect(ranges).toMatchObject({
      podCidrs: ['10.9.0.0/16'],
      externalCidr: '10.71.0.0/16',
      reservedSubnets: ['172.16.0.0/12'],
      fixed: { external: true, internal: false },
    });
  });

  test('keeps what is installed, and adds reserved ranges to it', () => {
    const installed = networkManifests(
      settle({ externalCidr: '10.71.0.0/16', reservedSubnet: ['172.16.0.0/12'] }).ranges,
    );
    const again = settle({ reservedSubnet: ['192.168.7.0/24'] }, installed, nothing).ranges;
    expect(again).toMatchObject({
      externalCidr: '10.71.0.0/16',
      reservedSubnets: ['172.16.0.0/12', '192.168.7.0/24'],
      fixed: { external: true, internal: false },
    });
    expect(() => settle({ externalCidr: '10.72.0.0/16' }, installed)).toThrow(
      /--external-cidr is 10\.72\.0\.0\/16, but 10\.71\.0\.0\/16 is installed/,
    );
  });

  test('refuses what is missing, malformed or taken, and lets a movable default be', () => {
    expect(() => settle({}, [], nothing)).toThrow(/--service-cidr is not given, and nothing in the cluster tells it/);
    expect(() => settle({ podCidr: ['10.0.0.0'] })).toThrow(/--pod-cidr is "10\.0\.0\.0": accepted is an IPv4 range/);
    expect(() => settle({ internalCidr: '10.244.3.0/24' })).toThrow(/--internal-cidr .* overlaps --pod-cidr/);
    expect(settle({ podCidr: ['10.80.0.0/16'] }).ranges.internalCidr).toBe('10.80.0.0/16');
  });
});
