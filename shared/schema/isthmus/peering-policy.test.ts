import { describe, expect, it } from 'vitest';
import { PolicyFacts } from '../protocol/agent-protocol.ts';
import { type PeeringPolicy, PeeringPolicySpec, policyFacts } from './peering-policy.ts';

const policy = (spec: unknown): PeeringPolicy => ({
  apiVersion: 'isthmus.dev/v1alpha1',
  kind: 'PeeringPolicy',
  metadata: { name: 'default' },
  spec: PeeringPolicySpec.parse(spec),
});

describe('policyFacts', () => {
  it('disables a side that the policy does not mention', () => {
    expect(policyFacts(policy({}))).toEqual({
      name: 'default',
      asConsumer: { enabled: false, autoAccept: false, peers: [] },
      asProvider: { enabled: false, autoAccept: false, peers: [], maxResourcesPerPeer: {}, classes: [] },
    });
  });

  it('asks a human unless told otherwise', () => {
    expect(policyFacts(policy({ asConsumer: {}, asProvider: {} }))).toEqual({
      name: 'default',
      asConsumer: { enabled: true, autoAccept: false, peers: ['*'] },
      asProvider: { enabled: true, autoAccept: false, peers: ['*'], maxResourcesPerPeer: {}, classes: ['default'] },
    });
  });

  it('writes quantities as text, which is what the protocol carries', () => {
    const facts = policyFacts(policy({ asProvider: { maxResourcesPerPeer: { cpu: 8, memory: '16Gi' } } }));
    expect(facts.asProvider.maxResourcesPerPeer).toEqual({ cpu: '8', memory: '16Gi' });
    expect(PolicyFacts.parse(facts)).toEqual(facts);
  });
});
