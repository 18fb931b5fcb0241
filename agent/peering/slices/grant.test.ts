/** The default class: tables for the words, generated requests for the limit. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { addResources, excessOver, type Resources } from '#shared/domain/quantity.ts';
import type { PeeringPolicy } from '#shared/schema/isthmus/peering-policy.ts';
import { decideGrant, defaultNodeResources, type GrantInput } from './grant.ts';

const policy = (
  name: string,
  max: Resources,
  more: Partial<NonNullable<PeeringPolicy['spec']['asProvider']>> = {},
): PeeringPolicy => ({
  apiVersion: 'isthmus.dev/v1alpha1',
  kind: 'PeeringPolicy',
  metadata: { name },
  spec: {
    tenants: ['*'],
    asProvider: {
      enabled: true,
      autoAccept: true,
      peers: ['*'],
      maxResourcesPerPeer: { ...max },
      classes: ['default'],
      ...more,
    },
    reflectedKinds: [],
  },
});
const ask = (over: Partial<GrantInput>): GrantInput => ({
  consumer: 'rome',
  className: '',
  asked: {},
  defaults: defaultNodeResources,
  others: [],
  policies: [],
  ...over,
});

describe('what the default class grants', () => {
  test('without any policy: the defaults, overlaid by what is asked', () => {
    expect(decideGrant(ask({ asked: { cpu: 2, 'example.com/gpu': '1' } }))).toEqual({
      accepted: true,
      resources: { ...defaultNodeResources, cpu: '2', 'example.com/gpu': '1' },
    });
  });

  test('over the limit: denied, naming resource, asked and limit', () => {
    expect(decideGrant(ask({ asked: { cpu: '3', memory: '1Gi' }, policies: [policy('p', { cpu: '2' })] }))).toEqual({
      accepted: false,
      reason: 'PolicyLimitExceeded',
      message: 'PeeringPolicy p limits what rome may get: cpu: asked 3, limit 2',
    });
  });

  test('the limit is for the peer, so other slices count', () => {
    const grant = decideGrant(
      ask({ asked: { cpu: '2' }, others: [{ cpu: '1' }], policies: [policy('p', { cpu: '2' })] }),
    );
    expect(grant).toMatchObject({
      accepted: false,
      message: expect.stringContaining('asked 2 besides 1 already granted'),
    });
  });

  test('defaults that were not asked for are cut to the limit', () => {
    expect(
      decideGrant(ask({ policies: [policy('p', { cpu: '1', memory: '64Gi' })], others: [{ cpu: '500m' }] })),
    ).toEqual({
      accepted: true,
      resources: { ...defaultNodeResources, cpu: '500m' },
    });
  });

  test('policies add up: one that allows it is enough', () => {
    const policies = [policy('a', { cpu: '1' }), policy('b', { cpu: '8' }, { peers: ['rome'] })];
    expect(decideGrant(ask({ asked: { cpu: '4' }, policies })).accepted).toBe(true);
    expect(decideGrant(ask({ asked: { cpu: '4' }, policies, consumer: 'turin' })).accepted).toBe(false);
  });

  test.each([
    [
      'a peer no policy speaks about',
      { policies: [policy('p', {}, { peers: ['turin'] })] },
      /no PeeringPolicy .* rome or \*/,
    ],
    ['a policy that is switched off', { policies: [policy('p', {}, { enabled: false })] }, /no PeeringPolicy/],
    [
      'a class that is not offered',
      { policies: [policy('p', {}, { classes: ['gold'] })] },
      /class "default"; accepted: gold/,
    ],
    ['what is no quantity', { asked: { cpu: 'much' } }, /spec\.resources.*cpu.*much/],
    ['a negative quantity', { asked: { cpu: '-1' } }, /cpu/],
  ] as const)('refuses %s', (_name, over, message) => {
    const grant = decideGrant(ask(over));
    expect(grant.accepted).toBe(false);
    expect(grant).toMatchObject({ message: expect.stringMatching(message) });
  });

  describe('capacity', () => {
    const overcommitted = policy('p', {}, { overcommitPercent: 150 });
    const capacity = { allocatable: { cpu: '8', memory: '16Gi', pods: '110' }, granted: { cpu: '10' } };

    test('what the cluster cannot honour is refused with the numbers', () => {
      expect(decideGrant(ask({ asked: { cpu: '3' }, policies: [overcommitted], capacity }))).toEqual({
        accepted: false,
        reason: 'CapacityExceeded',
        message:
          'this cluster has not enough left under PeeringPolicy p: cpu: asked 3, left 2 of 12 (150 % of 8 allocatable), granted to others 10',
      });
      const gpu = decideGrant(ask({ asked: { 'example.dev/gpu': '1' }, policies: [overcommitted], capacity }));
      expect(gpu).toMatchObject({
        accepted: false,
        message: expect.stringContaining('example.dev/gpu: asked 1, left 0'),
      });
    });

    test('what fits is granted, and defaults are cut to what is left', () => {
      const grant = decideGrant(ask({ asked: { memory: '20Gi' }, policies: [overcommitted], capacity }));
      expect(grant).toMatchObject({ accepted: true, resources: { memory: '20Gi', cpu: '2', pods: '110' } });
    });

    test('a slice keeps what it was granted when nodes are lost, and gets no more', () => {
      const lost = { allocatable: { cpu: '1' }, granted: {} };
      const given = { ...defaultNodeResources, cpu: '2' };
      const again = ask({ asked: { cpu: '2' }, policies: [overcommitted], capacity: lost, current: given });
      expect(decideGrant(again)).toEqual({ accepted: true, resources: given });
      expect(decideGrant({ ...again, asked: { cpu: '3' } })).toMatchObject({ reason: 'CapacityExceeded' });
    });

    test('without an overcommit factor capacity is ignored', () => {
      expect(decideGrant(ask({ asked: { cpu: '99' }, policies: [policy('p', {})], capacity })).accepted).toBe(true);
      expect(decideGrant(ask({ asked: { cpu: '99' }, capacity })).accepted).toBe(true);
    });

    test('for any requests, the sum of all grants never exceeds the factor', () => {
      const asks = fc.array(fc.tuple(fc.constantFrom('rome', 'turin', 'bari'), fc.nat(9_000)), { maxLength: 12 });
      fc.assert(
        fc.property(asks, fc.integer({ min: 1, max: 300 }), (requests, overcommitPercent) => {
          let granted: Record<string, string> = {};
          for (const [consumer, milli] of requests) {
            const now = { allocatable: { cpu: '8', memory: '64Gi', pods: '500', 'ephemeral-storage': '1Ti' }, granted };
            const policies = [policy('p', {}, { overcommitPercent })];
            const grant = decideGrant(ask({ consumer, asked: { cpu: `${milli}m` }, policies, capacity: now }));
            if (grant.accepted) granted = addResources(granted, grant.resources);
          }
          expect(
            excessOver(granted, { cpu: `${80 * overcommitPercent}m`, pods: String(5 * overcommitPercent) }),
          ).toEqual([]);
        }),
      );
    });
  });

  test('for any requests in any order, the sum of all grants never exceeds the limit', () => {
    const amount = fc.oneof(
      fc.nat(20).map(String),
      fc.nat(9_000).map((n) => `${n}m`),
      fc.nat(5).map((n) => `${n}Ki`),
    );
    const request = fc.dictionary(fc.constantFrom('cpu', 'memory', 'pods', 'example.com/gpu'), amount);
    fc.assert(
      fc.property(fc.array(request, { maxLength: 8 }), request, (requests, max) => {
        const granted: Record<string, string>[] = [];
        for (const asked of requests) {
          const grant = decideGrant(ask({ asked, others: granted, policies: [policy('p', max)] }));
          if (!grant.accepted) continue;
          expect(grant.resources).toMatchObject(asked);
          granted.push(grant.resources);
        }
        const sum = granted.reduce<Record<string, string>>((all, one) => addResources(all, one), {});
        expect(excessOver(sum, max)).toEqual([]);
      }),
    );
  });
});
