/** Which peers a cluster's own policies let in, by name and by account. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { PeeringPolicy } from '#shared/schema/isthmus/peering-policy.ts';
import type { PolicyFacts } from '#shared/schema/protocol/agent-protocol.ts';
import { linkRejection, policyFacts, policyRejection } from './policy-check.ts';

const side = { enabled: true, autoAccept: false, peers: ['*'] };
const policy = (tenants: string[] | undefined, over: Partial<typeof side> = {}): PolicyFacts => ({
  name: 'default',
  ...(tenants === undefined ? {} : { tenants }),
  asConsumer: { ...side, ...over },
  asProvider: { ...side, ...over, maxResourcesPerPeer: {}, classes: ['default'] },
});
const set = (peerTenant?: string) => ({
  role: 'provider' as const,
  peer: 'rome',
  ...(peerTenant === undefined ? {} : { peerTenant }),
});

describe('a set whose peer is', () => {
  test.each([
    { of: 'the same tenant', peerTenant: undefined, tenants: ['*'], allowed: true },
    { of: 'the same tenant, listed', peerTenant: undefined, tenants: ['bolt'], allowed: true },
    { of: 'the same tenant, not listed', peerTenant: undefined, tenants: ['acme'], allowed: false },
    { of: 'another tenant, any allowed', peerTenant: 'acme', tenants: ['*'], allowed: true },
    { of: 'another tenant, listed', peerTenant: 'acme', tenants: ['acme'], allowed: true },
    { of: 'another tenant, not listed', peerTenant: 'acme', tenants: ['bolt', 'corp'], allowed: false },
    { of: 'another tenant, and the policy names none', peerTenant: 'acme', tenants: undefined, allowed: false },
    { of: 'the same tenant, and the policy names none', peerTenant: undefined, tenants: undefined, allowed: true },
  ])('$of: $allowed', ({ peerTenant, tenants, allowed }) => {
    const rejection = policyRejection(set(peerTenant), [policy(tenants)], 'bolt');
    expect(rejection === undefined).toBe(allowed);
    if (!allowed) expect(rejection).toContain(`spec.tenants contain ${peerTenant ?? 'bolt'} or *`);
  });
});

test('policies add up, and no list of tenants lets in a peer that the list of peers keeps out', () => {
  const names = fc.constantFrom('acme', 'bolt', 'corp', '*');
  const some = fc.array(
    fc.record({
      tenants: fc.option(fc.array(names, { maxLength: 3 }), { nil: undefined }),
      enabled: fc.boolean(),
      peers: fc.array(fc.constantFrom('rome', 'milan', '*'), { maxLength: 2 }),
    }),
    { maxLength: 4 },
  );
  fc.assert(
    fc.property(some, fc.option(fc.constantFrom('acme', 'corp'), { nil: undefined }), (policies, peerTenant) => {
      const facts = policies.map(({ tenants, ...over }) => policy(tenants, over));
      const each = facts.map((one) => policyRejection(set(peerTenant), [one], 'bolt') === undefined);
      expect(policyRejection(set(peerTenant), facts, 'bolt') === undefined).toBe(each.includes(true));
      policies.forEach(({ enabled, peers }, i) => {
        if (!enabled || !(peers.includes('rome') || peers.includes('*'))) expect(each[i]).toBe(false);
      });
    }),
    { numRuns: 300 },
  );
});

test('the facts of a policy name the tenants that it is about', () => {
  const object = { metadata: { name: 'default' }, spec: { tenants: ['acme'], asProvider: side } };
  expect(policyFacts(object as unknown as PeeringPolicy).tenants).toEqual(['acme']);
});

describe('a link', () => {
  const ranges = (...pod: string[]) => ({
    apiVersion: 'networking.liqo.io/v1beta1',
    kind: 'Configuration',
    metadata: { name: 'rome' },
    spec: { remote: { cidr: { pod, external: ['10.70.0.0/16'] } } },
  });
  const about = (network?: PolicyFacts['network']): PolicyFacts => ({
    ...policy(['*']),
    ...(network ? { network } : {}),
  });
  test.each<{ when: string; policies: PolicyFacts[]; says?: string }>([
    { when: 'no policy mentions it', policies: [about()] },
    { when: 'all ranges are accepted', policies: [about({ enabled: true, remoteCidrs: [] })] },
    { when: 'the ranges fit', policies: [about({ enabled: true, remoteCidrs: ['10.0.0.0/8'] })] },
    {
      when: 'a range does not fit',
      policies: [about({ enabled: true, remoteCidrs: ['10.70.0.0/16', '10.200.0.0/17'] })],
      says: 'rome announces 10.200.0.0/16; PeeringPolicy default accepts spec.network.remoteCidrs 10.70.0.0/16, 10.200.0.0/17',
    },
    {
      when: 'links are forbidden',
      policies: [about({ enabled: false, remoteCidrs: [] })],
      says: 'spec.network.enabled false',
    },
    {
      when: 'one policy forbids what another allows',
      policies: [about({ enabled: false, remoteCidrs: [] }), about({ enabled: true, remoteCidrs: [] })],
    },
    {
      when: 'a policy about others allows it',
      policies: [about({ enabled: false, remoteCidrs: [] }), { ...policy(['acme']), name: 'other' }],
      says: 'spec.network.enabled false',
    },
  ])('is judged when $when', ({ policies, says }) => {
    const rejection = linkRejection(set(), ranges('10.200.0.0/16'), policies, 'bolt');
    if (says === undefined) expect(rejection).toBeUndefined();
    else expect(rejection).toMatchObject({ code: 'policy_refused', message: expect.stringContaining(says) });
  });

  test('is no matter of a ResourceSlice', () => {
    const slice = { apiVersion: 'v1', kind: 'ResourceSlice', metadata: { name: 'rome' } };
    expect(linkRejection(set(), slice, [about({ enabled: false, remoteCidrs: [] })], 'bolt')).toBeUndefined();
  });
});
