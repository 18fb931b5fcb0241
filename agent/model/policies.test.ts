import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type PeeringPolicy, ReflectedKind } from '#shared/schema/isthmus/peering-policy.ts';
import { kindsRefusedToSome, reflectedKinds } from './policies.ts';

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
