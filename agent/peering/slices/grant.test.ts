/** The default class: tables for the words, generated requests for the limit. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { amountsOf } from '#shared/domain/pod-resources.ts';
import { addResources, excessOver, type Resources } from '#shared/domain/quantity.ts';
import type { PeeringPolicy } from '#shared/schema/isthmus/peering-policy.ts';
import { decideGrant, defaultNodeResources, type GrantInput } from './grant.ts';
import { growAfterMs } from './share.ts';

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
      sharePercent: 100,
      elastic: false,
      ...more,
    },
    reflectedKinds: [],
  },
});
const holding = (allocatable: Resources, own: Resources = {}) => ({
  allocatable: amountsOf(allocatable),
  own: amountsOf(own),
});
const supply = (allocatable: Resources, own?: Resources) => ({
  ready: holding(allocatable, own),
  lasting: holding(allocatable, own),
  older: {},
  granted: {},
});
const plenty = supply({ cpu: '99', memory: '1Ti', pods: '999', 'ephemeral-storage': '1Ti', 'example.com/gpu': '99' });
const ask = (over: Partial<GrantInput>): GrantInput => ({
  consumer: 'rome',
  className: '',
  asked: {},
  defaults: defaultNodeResources,
  others: [],
  policies: [],
  capacity: plenty,
  storageClasses: ['fast'],
  mayGrow: true,
  ...over,
});

describe('storage', () => {
  const gold = 'gold.storageclass.storage.k8s.io/requests.storage';

  test('is granted as asked, regardless of what nodes have, up to what the policy gives one consumer', () => {
    const policies = [policy('p', { 'requests.storage': '10Gi' })];
    const asked = { 'requests.storage': '6Gi', persistentvolumeclaims: '3' };
    expect(decideGrant(ask({ asked, policies }))).toMatchObject({ accepted: true, resources: asked });
    expect(decideGrant(ask({ asked, policies, others: [{ 'requests.storage': '5Gi' }] }))).toMatchObject({
      accepted: false,
      reason: 'PolicyLimitExceeded',
    });
  });

  test('that the policy limits is granted as far as it is left to a slice that does not ask for it', () => {
    const policies = [policy('p', { 'requests.storage': '10Gi', persistentvolumeclaims: '5' })];
    expect(decideGrant(ask({ policies, others: [{ 'requests.storage': '4Gi' }] }))).toMatchObject({
      accepted: true,
      resources: { 'requests.storage': '6Gi', persistentvolumeclaims: '5' },
    });
  });

  test('of a class that is not offered is denied by its name', () => {
    expect(decideGrant(ask({ asked: { [gold]: '1Gi' } }))).toMatchObject({
      accepted: false,
      reason: 'StorageClassNotOffered',
      message: expect.stringMatching(/gold.*offered are fast/),
    });
    expect(decideGrant(ask({ asked: { [gold]: '1Gi' }, storageClasses: ['gold'] }))).toMatchObject({ accepted: true });
  });
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

  describe('of what there is', () => {
    const small = supply({ cpu: '2', memory: '4Gi', pods: '110', 'ephemeral-storage': '40Gi' }, { cpu: '400m' });

    test.each([
      ['no policy at all', []],
      ['a policy that does not speak of it', [policy('p', {}, { sharePercent: 90 })]],
    ])('a provider of two cores is no node of a thousand under %s', (_name, policies) => {
      const grant = decideGrant(ask({ asked: { cpu: '1000' }, policies, capacity: small }));
      expect(grant).toMatchObject({ accepted: false, reason: 'CapacityExceeded' });
      expect(grant).toMatchObject({
        message: expect.stringContaining(
          'cpu: asked 1000, left 1440m of 1440m (90 % of what the pods of this cluster leave of 2), granted to others 0',
        ),
      });
    });

    test('what fits is granted in full, and what was not named is cut to what is left, in steps', () => {
      const capacity = { ...small, granted: { cpu: '100m' } };
      const grant = decideGrant(ask({ asked: { memory: '3Gi' }, policies: [policy('p', {})], capacity }));
      expect(grant).toEqual({
        accepted: true,
        resources: { ...defaultNodeResources, memory: '3Gi', cpu: '1500m' },
        less: 'cpu 1500m of 4',
      });
    });

    test('a slice that could hold no pod is denied', () => {
      const capacity = { ...small, granted: { cpu: '2' } };
      expect(decideGrant(ask({ policies: [policy('p', {})], capacity }))).toMatchObject({
        accepted: false,
        message: expect.stringContaining('cpu: asked 4, left 0 of 1600m'),
      });
    });

    test('a slice that was granted shrinks when the pods of this cluster request more, and is never denied for it', () => {
      const current = { cpu: '1', memory: '1Gi' };
      const request = ask({ asked: current, defaults: {}, policies: [policy('p', {})], current });
      const busy = supply({ cpu: '2', memory: '4Gi' }, { cpu: '1300m' });
      expect(decideGrant({ ...request, capacity: busy })).toEqual({
        accepted: true,
        resources: { cpu: '700m', memory: '1Gi' },
        less: 'cpu 700m of 1',
      });
      const full = supply({ cpu: '2', memory: '4Gi' }, { cpu: '2' });
      expect(decideGrant({ ...request, capacity: full })).toMatchObject({ accepted: true, resources: { cpu: '0' } });
    });

    test('a slice that shrank grows again, but not at once', () => {
      const current = { cpu: '700m' };
      const request = ask({ asked: { cpu: '1' }, defaults: {}, policies: [policy('p', {})], current, capacity: small });
      expect(decideGrant({ ...request, mayGrow: false })).toMatchObject({ resources: { cpu: '700m' } });
      expect(decideGrant(request)).toEqual({ accepted: true, resources: { cpu: '1' } });
    });

    test('of which no node is Ready says that, and not that too much was asked', () => {
      const grant = decideGrant(ask({ policies: [policy('p', {})], capacity: { ...small, ready: holding({}) } }));
      expect(grant).toMatchObject({
        accepted: false,
        reason: 'NoNodeReady',
        message: expect.stringMatching(/has no Ready node .* under PeeringPolicy p now/),
      });
    });

    test('a node that was lost a moment ago takes nothing away, and gives nothing new', () => {
      const capacity = { ...small, ready: holding({}) };
      const current = { cpu: '1' };
      const request = ask({ asked: { cpu: '1' }, defaults: {}, policies: [policy('p', {})], capacity });
      expect(decideGrant({ ...request, current })).toEqual({ accepted: true, resources: current });
      expect(decideGrant(request)).toMatchObject({ accepted: false, reason: 'NoNodeReady' });
    });

    test('a raised request of a granted slice gets as much as there is', () => {
      const request = ask({ asked: { cpu: '1000' }, defaults: {}, policies: [policy('p', {})], current: { cpu: '1' } });
      expect(decideGrant({ ...request, capacity: small })).toMatchObject({ resources: { cpu: '1600m' } });
    });

    test('of an elastic cluster any request is granted', () => {
      const policies = [policy('p', {}, { elastic: true })];
      expect(decideGrant(ask({ asked: { cpu: '1000' }, policies, capacity: small })).accepted).toBe(true);
    });

    interface Held {
      readonly asked: number;
      current: Resources | undefined;
      shrunkAt: number;
    }
    const minutes = fc.array(
      fc.record({
        own: fc.nat(4_500),
        newcomer: fc.option(fc.integer({ min: 1, max: 3_000 }), { nil: undefined }),
        passesMs: fc.integer({ min: 1_000, max: 400_000 }),
      }),
      { maxLength: 25 },
    );
    const milli = (amount: Resources | undefined): number => Number(amountsOf(amount).cpu ?? 0n) / 1e6;

    test('for every history of own pods and consumers, all grants together settle within the share, and none grows within five minutes of shrinking', () => {
      fc.assert(
        fc.property(minutes, fc.integer({ min: 0, max: 250 }), (history, sharePercent) => {
          const slices: Held[] = [];
          let now = 0;
          for (const { own, newcomer, passesMs } of history) {
            now += passesMs;
            if (newcomer !== undefined)
              slices.push({ asked: newcomer, current: undefined, shrunkAt: Number.NEGATIVE_INFINITY });
            const nodes = supply({ cpu: '4' }, { cpu: `${own}m` });
            const most = (Math.max(0, 4_000 - own) * sharePercent) / 100;
            const wasWithin = slices.reduce((all, { current }) => all + milli(current), 0) <= most;
            for (const slice of slices) {
              const sum = (of: readonly Held[]) => ({
                cpu: `${of.reduce((all, one) => all + milli(one.current), 0)}m`,
              });
              const capacity = {
                ...nodes,
                older: sum(slices.slice(0, slices.indexOf(slice))),
                granted: sum(slices.filter((one) => one !== slice)),
              };
              const grant = decideGrant({
                ...ask({
                  asked: { cpu: `${slice.asked}m` },
                  defaults: {},
                  policies: [policy('p', {}, { sharePercent })],
                }),
                current: slice.current,
                capacity,
                mayGrow: now - slice.shrunkAt >= growAfterMs,
              });
              if (!grant.accepted) {
                expect(slice.current).toBeUndefined();
                continue;
              }
              const [before, after] = [milli(slice.current), milli(grant.resources)];
              expect(after).toBeLessThanOrEqual(slice.asked);
              if (after > before) expect(now - slice.shrunkAt).toBeGreaterThanOrEqual(growAfterMs);
              if (after < before) {
                expect(wasWithin).toBe(false);
                slice.shrunkAt = now;
              }
              slice.current = grant.resources;
            }
            expect(slices.reduce((all, { current }) => all + milli(current), 0)).toBeLessThanOrEqual(most);
          }
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

test.each(['constructor', 'toString', '__proto__', 'hasOwnProperty'])(
  'a resource called %s is one that this cluster has none of',
  (resource) => {
    const asked = JSON.parse(`{"${resource}": "1"}`) as Record<string, string>;
    expect(decideGrant(ask({ asked }))).toMatchObject({ accepted: false, reason: 'CapacityExceeded' });
    expect(
      decideGrant(ask({ asked: { cpu: '1' }, others: [asked], policies: [policy('p', { cpu: '2' })] })),
    ).toMatchObject({
      accepted: true,
      resources: { cpu: '1' },
    });
  },
);
