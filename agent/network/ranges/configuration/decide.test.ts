import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { apiVersionOf } from '#shared/domain/kube-object.ts';
import { networkName } from '#shared/domain/network-keys.ts';
import type { PeeringPolicy } from '#shared/schema/isthmus/peering-policy.ts';
import type { Configuration } from '#shared/schema/liqo/configuration.ts';
import type { Network } from '#shared/schema/liqo/network.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import { requestOf } from '../cluster-ipam.ts';
import {
  buildRemoteNetwork,
  configurationStatus,
  namedRanges,
  planNetworks,
  rangesDiffer,
  refusedRange,
  verdictOf,
} from './decide.ts';

const configuration = (pod: string[], external: string[] = [], status?: Configuration['status']): Configuration => ({
  apiVersion: apiVersionOf(networkKinds.configurations),
  kind: 'Configuration',
  metadata: { name: 'milan', namespace: 't', generation: 3 },
  spec: { remote: { cidr: { pod, external } } },
  ...(status === undefined ? {} : { status }),
});
const network = (cidr: string, granted?: string, deleting = false): Network => ({
  apiVersion: apiVersionOf(networkKinds.networks),
  kind: 'Network',
  metadata: {
    name: networkName.remoteNetwork('milan', 'pod', cidr),
    namespace: 't',
    ...(deleting ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {}),
  },
  spec: { cidr },
  ...(granted === undefined ? {} : { status: { cidr: granted } }),
});
const [a, b, c] = ['10.1.0.0/16', '10.2.0.0/16', '10.3.0.0/16'];

describe('ranges of a peer', () => {
  test.each([
    ['8.8.8.0/24', 'spec.remote.cidr.external[0] is 8.8.8.0/24: accepted is a part of 10.0.0.0/8'],
    ['10.0.0.1/16', 'accepted is 10.0.0.0/16'],
    ['127.0.0.0/8', 'loopback'],
    ['172.0.0.0/8', 'accepted is a part of'],
  ])('%s is refused by name', (cidr, says) => {
    expect(refusedRange(configuration([a], [cidr]))).toContain(says);
  });
  test.each([['10.0.0.0/8'], ['100.64.0.0/12'], ['198.18.0.0/16'], ['192.168.1.0/24']])('%s may be had', (cidr) => {
    expect(refusedRange(configuration([cidr]))).toBeUndefined();
  });
});

describe('ranges that a policy names', () => {
  const policy = (peers: string[], remoteCidrs: string[]): PeeringPolicy => ({
    apiVersion: 'isthmus.dev/v1alpha1',
    kind: 'PeeringPolicy',
    metadata: { name: 'p' },
    spec: {
      tenants: ['*'],
      asConsumer: { enabled: true, autoAccept: false, peers },
      network: { enabled: true, remoteCidrs },
      reflectedKinds: [],
    },
  });
  test('may be public, for the peers of that policy and for no other', () => {
    const policies = [policy(['milan'], ['203.0.113.0/24']), policy(['turin'], ['198.51.100.0/24']), policy(['*'], [])];
    const named = namedRanges(policies, 'milan');
    expect(refusedRange(configuration(['203.0.113.0/24']), named)).toBeUndefined();
    expect(refusedRange(configuration(['198.51.100.0/24']), named)).toContain('remoteCidrs');
    // A part of what is named is not what is named.
    expect(refusedRange(configuration(['203.0.113.0/25']), named)).toContain('remoteCidrs');
  });
  test('are marked for the IPAM, which moves others that are small', () => {
    const owner = { apiVersion: 'v1', kind: 'Configuration', name: 'milan', uid: 'u' };
    const range = { type: 'pod', cidr: '10.0.0.2/32' } as const;
    const originOf = (isNamed: boolean) =>
      requestOf(buildRemoteNetwork(configuration([range.cidr]), range, 'milan', owner, isNamed) as Network).origin;
    expect([originOf(false), originOf(true)]).toEqual(['announced', 'named']);
  });
});

test.each([
  ['asks for all at first', [a, b], [], [], [a, b]],
  ['asks for one that is listed twice once', [a, a], [], [], [a]],
  ['asks for nothing when all are there', [a], [network(a, a)], [], []],
  ['lets go first of what is not wanted', [b], [network(a, a)], [a], []],
  ['waits until it is gone', [b], [network(a, a, true)], [], []],
  ['waits for one that is being deleted and wanted again', [a], [network(a, a, true)], [], []],
  ['asks again for one that was deleted by hand', [a, b], [network(b, b)], [], [a]],
])('a Configuration %s', (_what, wanted, own, remove, create) => {
  const plan = planNetworks(configuration(wanted), own);
  expect(plan.remove.map(({ spec }) => spec.cidr)).toEqual(remove);
  expect(plan.create.map(({ cidr }) => cidr)).toEqual(create);
});

test('views are listed like the ranges they stand for, also when one is listed twice', () => {
  const { remote } = verdictOf(configuration([b, a, b]), [network(a, c), network(b, b)]);
  expect(remote?.cidr.pod).toEqual([b, c, b]);
});

test('what was granted stays visible while another range is awaited, but not as the answer to this generation', () => {
  const before = { remote: { cidr: { pod: [c], external: [] } }, conditions: [] };
  const one = configuration([a, b], [], before);
  const status = configurationStatus(one, verdictOf(one, [network(a, c), network(b)]), 0);
  expect(status.remote).toEqual(before.remote);
  expect(status.conditions).toMatchObject([{ status: 'False', reason: 'WaitingForNetworks', observedGeneration: 3 }]);
});

test.each([
  { what: 'what the peer has', announced: { pod: [b, a], external: [] }, says: undefined },
  { what: 'nothing, as Liqo does,', announced: undefined, says: undefined },
  {
    what: 'other pods',
    announced: { pod: [c], external: [] },
    says: `spec.remote.cidr.pod is ${a}, ${b}, the peer has ${c}`,
  },
  { what: 'more pods', announced: { pod: [a, b, c], external: [] }, says: `the peer has ${a}, ${b}, ${c}` },
  {
    what: 'external ones, too',
    announced: { pod: [a, b], external: [c] },
    says: `external is empty, the peer has ${c}`,
  },
])('of a peer that announces $what the Configuration says: $says', ({ announced, says }) => {
  const differ = rangesDiffer(configuration([a, b]), announced);
  if (says === undefined) expect(differ).toBeUndefined();
  else expect(differ).toContain(says);
});

test('that the peer has other ranges stands beside what was granted, and goes when it is mended', () => {
  const one = configuration([a]);
  const verdict = verdictOf(one, [network(a, c)]);
  const status = configurationStatus(one, verdict, 0, 'the peer has others');
  expect(status.remote?.cidr.pod).toEqual([c]);
  expect(status.conditions).toMatchObject([
    { type: 'NetworkCIDRsConfigured', status: 'True' },
    { type: 'PeerRanges', status: 'False', reason: 'RangesDiffer', message: 'the peer has others' },
  ]);
  const mended = configurationStatus(configuration([a], [], status), verdict, 1_000);
  expect(mended.conditions).toMatchObject([{ type: 'NetworkCIDRsConfigured', status: 'True' }]);
  expect(mended.conditions).toHaveLength(1);
});

test('after any edits in any order, passes lead to exactly the wanted Networks, and never hold an old and a new one at once', () => {
  const lists = fc.array(fc.uniqueArray(fc.constantFrom(a, b, c, '10.4.0.0/16'), { minLength: 1 }), {
    minLength: 1,
    maxLength: 5,
  });
  // One step of the world: a pass that is killed after so many writes, or a deletion that completes.
  const steps = fc.array(fc.oneof(fc.record({ writes: fc.nat(3) }), fc.constant('collect' as const)), {
    maxLength: 12,
  });
  fc.assert(
    fc.property(lists, steps, (edits, between) => {
      let own: Network[] = [];
      const pass = (wanted: string[], writes: number): void => {
        const { remove, create } = planNetworks(configuration(wanted), own);
        expect(remove.length === 0 || create.length === 0).toBe(true);
        for (const gone of remove.slice(0, writes))
          own = own.map((one) => (one === gone ? network(one.spec.cidr, one.spec.cidr, true) : one));
        for (const { cidr } of create.slice(0, writes)) {
          expect(own.every(({ spec }) => wanted.includes(spec.cidr))).toBe(true);
          own.push(network(cidr, cidr));
        }
      };
      const collect = (): void => {
        own = own.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
      };
      for (const wanted of edits)
        for (const step of between) step === 'collect' ? collect() : pass(wanted, step.writes);
      const last = edits.at(-1) ?? [];
      for (let i = 0; i < 4; i++) {
        pass(last, 9);
        collect();
      }
      expect(own.map(({ spec }) => spec.cidr).sort()).toEqual(last.toSorted());
      expect(verdictOf(configuration(last), own).remote?.cidr.pod).toEqual(last);
    }),
  );
});
