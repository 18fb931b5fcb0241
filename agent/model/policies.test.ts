import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type PeeringPolicy, ReflectedKind } from '#shared/schema/isthmus/peering-policy.ts';
import { consumerRefusal, kindsRefusedToSome, linkRefusal, reflectedKinds } from './policies.ts';

const all = [...ReflectedKind.options];
const policy = (kinds: readonly ReflectedKind[], peers: readonly string[], enabled = true): PeeringPolicy =>
  ({
    apiVersion: 'isthmus.dev/v1alpha1',
    kind: 'PeeringPolicy',
    metadata: { name: 'p' },
    spec: { asProvider: { enabled, peers }, asConsumer: { enabled, peers }, reflectedKinds: kinds },
  }) as unknown as PeeringPolicy;

test.each([
  ['all without any policy', [], all],
  ['those of a policy about the peer', [policy(['secret'], ['rome'])], ['secret']],
  [
    'those of all such policies together',
    [policy(['secret'], ['rome']), policy(['service'], ['*'])],
    ['secret', 'service'],
  ],
  ['none when the policies are about others', [policy(all, ['turin'])], []],
  ['none when the policy is switched off', [policy(all, ['*'], false)], []],
] as const)('kinds that cross: %s', (_name, policies, kinds) => {
  expect([...reflectedKinds(policies, 'asProvider', 'rome')].sort()).toEqual([...kinds].sort());
  expect([...reflectedKinds(policies, 'asConsumer', 'rome')].sort()).toEqual([...kinds].sort());
});

test('for any policies and any consumer, each kind that it may not send is looked at', () => {
  const policies = fc.array(
    fc
      .tuple(fc.subarray(all), fc.subarray(['*', 'rome', 'turin']), fc.boolean())
      .map(([kinds, peers, enabled]) => policy(kinds, peers, enabled)),
    { maxLength: 4 },
  );
  fc.assert(
    fc.property(policies, fc.constantFrom('rome', 'turin', 'bari'), (list, consumer) => {
      const sent = reflectedKinds(list, 'asProvider', consumer);
      const looked = kindsRefusedToSome(list);
      for (const kind of all) if (!sent.has(kind)) expect(looked).toContain(kind);
    }),
  );
});

const networked = (network: object | undefined, peers: readonly string[] = ['*']): PeeringPolicy => {
  const one = policy(all, peers);
  return { ...one, spec: { ...one.spec, ...(network && { network }) } } as PeeringPolicy;
};

test.each([
  ['without any policy', [], ['10.1.0.0/16'], undefined],
  ['of a policy that says nothing of networks', [networked(undefined)], ['10.1.0.0/16'], undefined],
  [
    'that a policy switches off',
    [networked({ enabled: false })],
    [],
    /p has spec.network.enabled false: no links to rome/,
  ],
  [
    'that one policy switches off and another allows',
    [networked({ enabled: false }), networked(undefined)],
    [],
    undefined,
  ],
  ['within the ranges', [networked({ enabled: true, remoteCidrs: ['10.1.0.0/16'] })], ['10.1.2.0/24'], undefined],
  [
    'beyond the ranges',
    [networked({ enabled: true, remoteCidrs: ['10.1.0.0/16'] })],
    ['10.1.2.0/24', '10.2.0.0/24'],
    /10.2.0.0\/24 is announced for rome.*10.1.0.0\/16/,
  ],
  ['to a peer that no policy is about', [networked(undefined, ['turin'])], [], /rome or \* among its peers/],
] as const)('a link %s', (_name, policies, ranges, refusal) => {
  const found = linkRefusal(policies, 'rome', ranges);
  if (refusal === undefined) expect(found).toBeUndefined();
  else expect(found).toMatch(refusal);
});

test('capacity is taken only from providers that a policy names', () => {
  expect(consumerRefusal([], 'milan')).toBeUndefined();
  expect(consumerRefusal([policy(all, ['milan'])], 'milan')).toBeUndefined();
  expect(consumerRefusal([policy(all, ['turin'])], 'milan')).toMatch(/asConsumer.enabled and milan or \*/);
  expect(consumerRefusal([policy(all, ['*'], false)], 'milan')).toBeDefined();
});
