/** When the policies of a cluster agree to a peering, refuse it or leave it to a human. */
import { describe, expect, test } from 'vitest';
import type { ClusterFacts, PeeringRole } from '#shared/schema/protocol/agent-protocol.ts';
import { openFacts } from '../../testing/simulated-cluster.ts';
import { type Terms, validateConsumer, validateProvider } from './consent.ts';

const spec: Terms = { consumer: 'rome', provider: 'milan', resources: { cpu: '2' }, class: 'default' };

describe('consent', () => {
  const policy = openFacts.policies[0];
  if (!policy) throw new Error('the facts of the simulation have a policy');
  const facts = (...providers: Partial<typeof policy.asProvider>[]): ClusterFacts => ({
    ...openFacts,
    policies: providers.map((change, i) => ({
      ...policy,
      name: `p${i}`,
      asProvider: { ...policy.asProvider, ...change },
    })),
  });
  test.each([
    { when: 'a policy accepts by itself', given: facts({}), kind: 'granted' },
    { when: 'it names the consumer', given: facts({ peers: ['rome'] }), kind: 'granted' },
    { when: 'it names others only', given: facts({ peers: ['turin'] }), kind: 'undecided' },
    { when: 'there is none', given: facts(), kind: 'undecided' },
    { when: 'it is switched off', given: facts({ enabled: false }), kind: 'undecided' },
    { when: 'a human must agree', given: facts({ autoAccept: false }), kind: 'undecided' },
    { when: 'it gives less', given: facts({ maxResourcesPerPeer: { cpu: '1' } }), kind: 'refused' },
    {
      when: 'it gives exactly that, written otherwise',
      given: facts({ maxResourcesPerPeer: { cpu: '2000m' } }),
      kind: 'granted',
    },
    { when: 'it limits something else', given: facts({ maxResourcesPerPeer: { memory: '1' } }), kind: 'granted' },
    { when: 'it offers another class', given: facts({ classes: ['gold'] }), kind: 'refused' },
    {
      when: 'one of two gives enough',
      given: facts({ maxResourcesPerPeer: { cpu: '1' } }, { maxResourcesPerPeer: { cpu: '4' } }),
      kind: 'granted',
    },
    {
      when: 'the one that gives enough wants to be asked',
      given: facts({ maxResourcesPerPeer: { cpu: '1' } }, { autoAccept: false }),
      kind: 'undecided',
    },
  ])('of the provider is $kind when $when', ({ given, kind }) => {
    expect(validateProvider(given, spec).kind).toBe(kind);
  });

  test('is what an administrator of the cluster gave there for that peer and role, and no more', () => {
    const waiting = facts({ autoAccept: false });
    const agreed = (peer: string, role: PeeringRole): ClusterFacts => ({
      ...waiting,
      consents: [{ peer, roles: [role] }],
    });
    expect(validateProvider(agreed('rome', 'provider'), spec).kind).toBe('granted');
    expect(validateProvider(agreed('rome', 'consumer'), spec).kind).toBe('undecided');
    expect(validateProvider(agreed('turin', 'provider'), spec).kind).toBe('undecided');
  });

  test('of the consumer goes by its own side of the policy', () => {
    const not = { ...openFacts, policies: [{ ...policy, asConsumer: { ...policy.asConsumer, peers: ['turin'] } }] };
    expect(validateConsumer(openFacts, spec).kind).toBe('granted');
    expect(validateConsumer(not, spec)).toMatchObject({ kind: 'undecided', message: expect.stringContaining('rome') });
  });
});
