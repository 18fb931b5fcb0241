import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Store } from '#kube/cache/store.ts';
import type { Caches } from '#kube/model/types.ts';
import type { KubeObject, PodSpec } from '#shared/domain/kube-object.ts';
import { isthmusAnnotation, label } from '#shared/domain/liqo-keys.ts';
import type { LimitsEnforcement } from '#shared/schema/definition/fields.ts';
import type { GuestPolicy } from '#shared/schema/isthmus/guest-policy.ts';
import { peeringPolicies } from '#shared/schema/isthmus/peering-policy.ts';
import type { ShadowPod } from '#shared/schema/liqo/shadow-pod.ts';
import { validateQuota } from '../quota/fits.ts';
import { safeRules } from './decide.ts';
import { guestSpec } from './guest-spec.ts';
import { classProblem, qosClassOf, withClassKept } from './qos-class.ts';
import { createRulebook } from './rulebook.ts';

const both = { cpu: '1', memory: '1Gi' };
const pod = (...resources: (object | undefined)[]): PodSpec =>
  ({ containers: resources.map((one, i) => ({ name: `c${i}`, ...(one && { resources: one }) })) }) as PodSpec;

test.each([
  ['BestEffort', pod(undefined)],
  ['BestEffort', pod({ requests: { cpu: '0', 'example.dev/gpu': '1' } })],
  ['BestEffort', pod({ requests: null, limits: null })],
  ['Burstable', pod({ requests: both })],
  ['Burstable', pod({ limits: { cpu: '1' } })],
  ['Burstable', pod({ limits: both }, undefined)],
  ['Burstable', pod({ requests: { cpu: '500m' }, limits: both })],
  ['Burstable', { ...pod({ limits: both }), initContainers: [{ name: 'i' }] } as PodSpec],
  ['Burstable', { ...pod(undefined), resources: { requests: both } } as PodSpec],
  ['Guaranteed', pod({ limits: both })],
  ['Guaranteed', pod({ requests: { cpu: '1000m' }, limits: both }, { requests: both, limits: both })],
  ['Guaranteed', { ...pod(undefined), resources: { requests: both, limits: both } } as PodSpec],
])('Kubernetes calls it %s: %j', (expected, spec) => {
  expect(qosClassOf(spec)).toBe(expected);
});

describe('a guest whose consumer cannot take another class', () => {
  const amounts = fc.record({ cpu: fc.constantFrom('1m', '2'), memory: fc.constant('1Gi') }, { requiredKeys: [] });
  const resources = fc.option(fc.record({ requests: amounts, limits: amounts }, { requiredKeys: [] }), {
    nil: undefined,
  });
  const someLimits = fc.record({ cpu: fc.constant('1'), memory: fc.constant('1Gi') }, { requiredKeys: [] });

  test('has the class that it asked for, or is refused for a limit', () => {
    fc.assert(
      fc.property(
        fc.array(resources, { minLength: 1, maxLength: 3 }),
        fc.constantFrom<LimitsEnforcement>('None', 'Soft', 'Hard'),
        someLimits,
        (given, enforcement, defaultLimits) => {
          const asked = pod(...given);
          const filled = guestSpec(asked, { ...safeRules, defaultLimits }, enforcement);
          const made = withClassKept(asked, filled);
          expect(qosClassOf(made)).toBe(qosClassOf(asked));
          // All limits that the provider wants are in it then.
          if (classProblem(asked, filled, enforcement) === undefined)
            expect(made.containers.map((one) => one.resources?.limits ?? {})).toEqual(
              filled.containers.map((one) => one.resources?.limits ?? {}),
            );
        },
      ),
    );
  });
});

function bookOf(guests: GuestPolicy, limitsEnforcement: LimitsEnforcement, limitRange?: object) {
  const asProvider = { enabled: true, peers: ['*'], guests, namespaceDefaults: { limitRange } };
  const policy = { metadata: { name: 'p' }, spec: { asProvider } };
  const quota = { metadata: { name: 'q', namespace: 'ns' }, spec: { user: 'slice', limitsEnforcement, resources: {} } };
  const caches = {
    cache({ kind }: { readonly kind: string }) {
      const store = new Store<KubeObject>(() => undefined);
      const all = kind === peeringPolicies.kind ? [policy] : [quota];
      return { list: () => all, byIndex: () => all, subscribe: store.subscribe.bind(store) };
    },
  };
  return createRulebook(caches as unknown as Caches);
}
const shadow = (spec: PodSpec, annotations: Record<string, string> = {}): ShadowPod =>
  ({
    metadata: { name: 'web', labels: { [label.origin]: 'rome', [label.creatorUser]: 'slice' }, annotations },
    spec: { pod: spec },
  }) as unknown as ShadowPod;
const ofIsthmus = { [isthmusAnnotation.localPodUid]: 'u' };
const defaults = { cpu: '25m', memory: '64Mi' };

describe('a pod that requests nothing', () => {
  const silent = pod(undefined);

  test('of Isthmus gets requests; of Liqo it stays as it is and counts as much', () => {
    const book = bookOf({}, 'Soft');
    const [ours, theirs] = [shadow(silent, ofIsthmus), shadow(silent)];
    expect(book.podSpecOf(ours).containers[0]?.resources?.requests).toEqual(defaults);
    expect(book.podSpecOf(theirs)).toBe(silent);
    expect(book.specOf(theirs)).toEqual(book.specOf(ours));
    expect([book.problemOf(ours), book.problemOf(theirs)]).toEqual([undefined, undefined]);
    const quota = { spec: { user: 'slice', limitsEnforcement: 'Soft', resources: { cpu: '30m', memory: '1Gi' } } };
    const judge = (used: object) => validateQuota(quota as never, book.specOf(theirs), used as never);
    expect(judge({})).toMatchObject({ allowed: true });
    expect(judge({ cpu: 10_000_000n })).toMatchObject({ allowed: false, code: 'quota_exceeded' });
  });

  test('of Liqo still loses what the provider does not accept', () => {
    const endless = { ...silent, terminationGracePeriodSeconds: 31_536_000 };
    expect(bookOf({}, 'Soft').podSpecOf(shadow(endless))).toEqual({ ...silent, terminationGracePeriodSeconds: 600 });
  });

  test.each([
    [
      { defaultLimits: { memory: '128Mi' } },
      'Soft',
      /has no memory: .*guests\.defaultLimits.*Burstable instead of Best/,
    ],
    [{}, 'Hard', /has no cpu and memory: .*guests\.limitsEnforcement.*Guaranteed instead of BestEffort.*Soft or None$/],
  ] as const)('of Liqo is refused where it had to have limits: %j %s', (guests, enforcement, message) => {
    const book = bookOf(guests, enforcement);
    expect(book.problemOf(shadow(silent))).toMatch(message);
    expect(book.problemOf(shadow(silent))).toMatch(/^spec\.pod\.containers\[c0\]\.resources\.limits .*; accepted are /);
    expect(book.problemOf(shadow(silent, ofIsthmus))).toBeUndefined();
    const limited = pod({ requests: defaults, limits: defaults });
    expect(book.problemOf(shadow(limited))).toBeUndefined();
  });

  test.each([
    [{ type: 'Container', default: { cpu: '1' } }, 'Burstable'],
    [{ type: 'Container', min: { memory: '1Mi' } }, 'Burstable'],
    [{ type: 'Container', max: both }, 'Guaranteed'],
    [{ type: 'Pod', max: both }, undefined],
    [{ type: 'Container', default: { 'ephemeral-storage': '1Gi' } }, undefined],
    [{ type: 'Container', default: 'surprise' }, undefined],
  ])('of Liqo is refused where a LimitRange of the policy changes its class: %j, %s', (limit, qosClass) => {
    const problem = bookOf({}, 'Soft', { limits: [limit] }).problemOf(shadow(silent));
    if (qosClass === undefined) expect(problem).toBeUndefined();
    else
      expect(problem).toMatch(new RegExp(`class BestEffort, .*namespaceDefaults.limitRange.* make that ${qosClass},`));
    expect(bookOf({}, 'Soft', { limits: [limit] }).problemOf(shadow(silent, ofIsthmus))).toBeUndefined();
    expect(bookOf({}, 'Soft', { limits: [limit] }).problemOf(shadow(pod({ limits: both })))).toBeUndefined();
  });
});
