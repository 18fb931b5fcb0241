/** The phases of a peering that lives, and what each side is asked for, by what both report. */
import { describe, expect, test } from 'vitest';
import { canonical } from '#shared/domain/canonical-json.ts';
import type { ObservedObject, PeeringRole } from '#shared/schema/protocol/agent-protocol.ts';
import type { Phase } from '../../model/peering.ts';
import type { DesiredContent, PeeringState, SideInput } from '../../model/peering-records.ts';
import { openFacts } from '../../testing/simulated-cluster.ts';
import { initialState } from '../core/peering-state.ts';
import { type ReconcileInput, reconcilePeering } from './decide.ts';
import { identity, node, now, refusal, reported, secret, slice, spec, tenant } from './testing/reports.ts';

const side = (change: Partial<SideInput> = {}): SideInput => ({
  facts: openFacts,
  lastSeenAt: now,
  offlineFrom: now + 90_000,
  left: false,
  ...change,
});
const input = (change: Partial<ReconcileInput> = {}): ReconcileInput => ({
  spec,
  state: initialState,
  consumer: side(),
  provider: side(),
  opposite: false,
  now,
  ...change,
});
const consumer = (...objects: ObservedObject[]) => side({ observed: reported('consumer', objects) });
const provider = (...objects: ObservedObject[]) => side({ observed: reported('provider', objects) });
const wasReady: PeeringState = { ...initialState, consentedAt: now, phase: 'Ready', phaseSince: { Ready: now } };
const kinds = (content: DesiredContent | undefined) => content?.objects.map((o) => o.kind) ?? [];

describe('a living peering', () => {
  test.each<{ when: string; given: Partial<ReconcileInput>; phase: Phase; unmet: string }>([
    {
      when: 'nothing was reported',
      given: {},
      phase: 'Connecting',
      unmet: 'Authenticated/WaitingForSignature/consumer',
    },
    {
      when: 'both sides applied',
      given: { consumer: consumer(), provider: provider() },
      phase: 'Authenticating',
      unmet: 'Authenticated/WaitingForSignature/consumer',
    },
    {
      when: 'the nonce is signed',
      given: { consumer: consumer(secret), provider: provider() },
      phase: 'Authenticating',
      unmet: 'Authenticated/WaitingForCertificate/provider',
    },
    {
      when: 'the certificate is there',
      given: { consumer: consumer(secret), provider: provider(tenant) },
      phase: 'Authenticating',
      unmet: 'Authenticated/WaitingForKubeconfig/consumer',
    },
    {
      when: 'the kubeconfig is there',
      given: { consumer: consumer(secret, identity), provider: provider(tenant) },
      phase: 'Negotiating',
      unmet: 'ResourcesGranted/WaitingForGrant/provider',
    },
    {
      when: 'the slice is granted',
      given: { consumer: consumer(secret, identity, slice('Accepted')), provider: provider(tenant) },
      phase: 'Negotiating',
      unmet: 'NodeReady/NoNode/consumer',
    },
    {
      when: 'the node is not ready',
      given: { consumer: consumer(secret, identity, slice('Accepted'), node(false)) },
      phase: 'Negotiating',
      unmet: 'NodeReady/KubeletDown/consumer',
    },
    {
      when: 'the node is ready',
      given: { consumer: consumer(secret, identity, slice('Accepted'), node(true)) },
      phase: 'Ready',
      unmet: '',
    },
    {
      when: 'the slice is denied',
      given: { consumer: consumer(secret, identity, slice('Denied', 'too much')) },
      phase: 'Failed',
      unmet: 'ResourcesGranted/Denied/provider',
    },
    {
      when: 'no node of the provider is Ready',
      given: { consumer: consumer(secret, identity, slice('Denied', 'no Ready node', 'NoNodeReady')) },
      phase: 'Negotiating',
      unmet: 'ResourcesGranted/NoNodeReady/provider',
    },
    {
      when: 'it worked and no node of the provider is Ready any more',
      given: {
        state: wasReady,
        consumer: consumer(secret, identity, slice('Denied', 'no Ready node', 'NoNodeReady'), node(true)),
      },
      phase: 'Degraded',
      unmet: 'ResourcesGranted/NoNodeReady/provider',
    },
    {
      when: 'a cluster refuses',
      given: { consumer: side({ observed: reported('consumer', [], { refusals: refusal('policy_refused') }) }) },
      phase: 'Failed',
      unmet: 'Authenticated/WaitingForSignature/consumer',
    },
    {
      when: 'a refusal passes by itself',
      given: { consumer: side({ observed: reported('consumer', [], { refusals: refusal('kube_conflict') }) }) },
      phase: 'Connecting',
      unmet: 'Authenticated/WaitingForSignature/consumer',
    },
    {
      when: 'it worked and the node fails',
      given: { state: wasReady, consumer: consumer(secret, identity, slice('Accepted'), node(false)) },
      phase: 'Degraded',
      unmet: 'NodeReady/KubeletDown/consumer',
    },
    {
      when: 'it worked and the provider is silent',
      given: {
        state: wasReady,
        consumer: consumer(identity, slice('Accepted'), node(true)),
        provider: side({ lastSeenAt: now - 90_000, offlineFrom: now }),
      },
      phase: 'Degraded',
      unmet: 'ProviderOnline/NotHeard/provider',
    },
    {
      when: 'the provider wants to be asked',
      given: { provider: side({ facts: { ...openFacts, policies: [] } }) },
      phase: 'Proposed',
      unmet: 'Consented/WaitingForConsent/provider',
    },
    {
      when: 'the consumer wants to be asked',
      given: { consumer: side({ facts: { ...openFacts, policies: [] } }) },
      phase: 'Proposed',
      unmet: 'Consented/WaitingForConsent/consumer',
    },
  ])('is $phase when $when', ({ given, phase, unmet }) => {
    const { state } = reconcilePeering(input(given));
    const first = state.conditions.find((c) => c.status !== 'True');
    expect({ phase: state.phase, unmet: first ? `${first.type}/${first.reason}/${first.side}` : '' }).toEqual({
      phase,
      unmet,
    });
  });

  test('asks for nothing before consent', () => {
    const result = reconcilePeering(input({ provider: side({ facts: { ...openFacts, policies: [] } }) }));
    expect(result).not.toHaveProperty('desiredConsumer');
    expect(result).not.toHaveProperty('desiredProvider');
  });

  test('hands each answer to the other side, and forgets none that a later report lacks', () => {
    const first = reconcilePeering(input({ consumer: consumer(secret), provider: provider(tenant) }));
    expect(kinds(first.desiredProvider)).toEqual(['Namespace', 'Secret', 'Tenant']);
    expect(kinds(first.desiredConsumer)).toEqual(['Namespace', 'Secret', 'ResourceSlice', 'Identity']);
    const later = reconcilePeering(input({ state: first.state, consumer: consumer(), provider: provider() }));
    expect(later.desiredProvider).toEqual(first.desiredProvider);
    expect(later.desiredConsumer).toEqual(first.desiredConsumer);
  });

  test('passes on what each cluster signed for the other, unread, and forgets none that a later report lacks', () => {
    const signing = (role: PeeringRole, announcement: string) =>
      side({ observed: reported(role, [], { announcement }) });
    const told = reconcilePeering(
      input({ consumer: signing('consumer', 'of rome'), provider: signing('provider', 'of milan') }),
    );
    const later = reconcilePeering(input({ state: told.state, consumer: consumer(), provider: provider() }));
    for (const { desiredConsumer, desiredProvider } of [told, later])
      expect([desiredConsumer?.announcement, desiredProvider?.announcement]).toEqual(['of milan', 'of rome']);
  });

  test('never passes on what is not public', () => {
    expect(canonical(reconcilePeering(input({ provider: provider(tenant) })))).not.toContain('aws');
  });

  test('leaves cordoning to the provider’s administrator', () => {
    const { desiredProvider } = reconcilePeering(input({ consumer: consumer(secret) }));
    const wanted = desiredProvider?.objects.find((o) => o.kind === 'Tenant') as unknown as {
      spec: Record<string, unknown>;
    };
    expect(Object.keys(wanted.spec).sort()).toEqual(['clusterID', 'csr', 'publicKey', 'signature']);
  });

  test('passes a renewed certificate on', () => {
    const first = reconcilePeering(input({ provider: provider(tenant) }));
    const renewed = {
      ...tenant,
      data: { ...tenant.data, authParams: { ca: 'Y2E=', signedCRT: 'bmV3', apiServer: 'https://milan:6443' } },
    };
    const next = reconcilePeering(input({ state: first.state, provider: provider(renewed) }));
    expect(canonical(next.desiredConsumer)).toContain('bmV3');
  });

  test('passes a sealed token on as it is, and the next one after it', () => {
    const sealed = (sealedToken: string, tokenExpiration: string) => ({
      ...tenant,
      data: {
        ...tenant.data,
        authParams: { ca: 'Y2E=', apiServer: 'https://milan:6443', sealedToken, tokenExpiration },
      },
    });
    const first = reconcilePeering(input({ provider: provider(sealed('e30.a.b.c.d', '2026-01-02T00:00:00Z')) }));
    const identityOf = (of: typeof first) =>
      of.desiredConsumer?.objects.find(({ kind }) => kind === 'Identity') as unknown as {
        spec: { authParams: object };
      };
    expect(identityOf(first).spec.authParams).toEqual({
      ca: 'Y2E=',
      apiServer: 'https://milan:6443',
      sealedToken: 'e30.a.b.c.d',
      tokenExpiration: '2026-01-02T00:00:00Z',
    });
    const renewed = provider(sealed('e30.e.f.g.h', '2026-01-03T00:00:00Z'));
    const next = reconcilePeering(input({ state: first.state, provider: renewed }));
    expect(identityOf(next).spec.authParams).toMatchObject({ sealedToken: 'e30.e.f.g.h' });
  });

  test('says what to do in every condition that needs a human', () => {
    const { state } = reconcilePeering(
      input({
        consumer: consumer(secret, identity, slice('Denied', 'too much')),
        provider: side({ lastSeenAt: 0, offlineFrom: 90_000 }),
      }),
    );
    const unmet = state.conditions.filter((c) => c.reason === 'Denied' || c.reason === 'NotHeard');
    expect(unmet).toHaveLength(2);
    for (const condition of unmet) expect(condition.action).not.toBe('');
  });

  test('says of a provider without a Ready node to look at its nodes, and not to ask for less', () => {
    const denied = slice('Denied', 'this cluster has no Ready node for pods of guests now', 'NoNodeReady');
    const { state } = reconcilePeering(input({ consumer: consumer(secret, identity, denied) }));
    expect(state.conditions.find(({ type }) => type === 'ResourcesGranted')).toMatchObject({
      message: 'milan grants nothing now: this cluster has no Ready node for pods of guests now',
      action: 'if this lasts, look at the nodes of milan: one must be Ready and take pods of guests',
    });
  });

  test('dates a condition by its status, not by its words', () => {
    const first = reconcilePeering(input());
    const later = reconcilePeering(
      input({ now: now + 5_000, state: first.state, consumer: consumer(secret), provider: provider() }),
    );
    const authenticated = later.state.conditions.find((c) => c.type === 'Authenticated');
    expect(authenticated).toMatchObject({ reason: 'WaitingForCertificate', since: now });
  });
});
