import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { canonical } from '#shared/domain/canonical-json.ts';
import type { ClusterFacts, ObservedObject, ObservedSet, PeeringRole } from '#shared/schema/protocol/agent-protocol.ts';
import { countOf } from '#test/harness/cases.ts';
import type { Phase } from '../../model/peering.ts';
import type {
  DesiredContent,
  DesiredRecord,
  PeeringSpec,
  PeeringState,
  SideInput,
} from '../../model/peering-records.ts';
import { openFacts } from '../../testing/simulated-cluster.ts';
import { initialState } from '../core/peering-state.ts';
import { validateConsumer, validateProvider } from '../terms/consent.ts';
import { type ReconcileInput, reconcilePeering } from './decide.ts';

const now = Date.UTC(2026, 0, 1);
const spec: PeeringSpec = {
  id: 'pe_1',
  consumer: 'rome',
  provider: 'milan',
  resources: { cpu: '2' },
  class: 'default',
  nonce: 'bm9uY2U=',
  createdAt: now,
  requestedBy: 'api-key/ak_1',
};
const object = (kind: string, name: string, data: Record<string, unknown> = {}): ObservedObject => ({
  apiVersion: 'v1',
  kind,
  name,
  uid: kind,
  data,
});
const secret = object('Secret', 'liqo-signed-nonce', { signedNonce: 'c2ln', csr: 'Y3Ny', publicKey: 'a2V5' });
const tenant = object('Tenant', 'rome', {
  authParams: {
    ca: 'Y2E=',
    signedCRT: 'Y3J0',
    apiServer: 'https://milan:6443',
    awsConfig: { awsSecretAccessKey: 'no' },
  },
  tenantNamespace: 'liqo-tenant-rome',
});
const identity = object('Identity', 'controlplane-milan', { kubeconfigReady: true });
const slice = (status: 'Accepted' | 'Denied', message = '', reason = 'R') =>
  object('ResourceSlice', 'milan', {
    conditions: [
      { type: 'Authentication', status: 'Accepted' },
      { type: 'Resources', status, reason, message },
    ],
    resources: { cpu: '2' },
  });
const node = (ready: boolean) => object('Node', 'milan', { ready, reason: 'KubeletDown', message: 'no route' });

const reported = (
  role: PeeringRole,
  objects: readonly ObservedObject[],
  change: Partial<ObservedSet> = {},
): ObservedSet => ({
  peering: 'pe_1',
  role,
  appliedRevision: 1,
  objects: [...objects],
  refusals: [],
  ...change,
});
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
const refusal = (code: string) => [{ object: 'ResourceSlice/liqo-tenant-milan/milan', code, message: 'no' }];

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

/** Any report that agents could send, sensible or not. */
const anyObject = fc.oneof(
  fc.constantFrom(
    secret,
    tenant,
    identity,
    slice('Accepted'),
    slice('Denied'),
    node(true),
    node(false),
    object('Namespace', 'liqo-tenant-milan'),
  ),
  fc
    .record({
      kind: fc.constantFrom('Secret', 'Tenant', 'Identity', 'ResourceSlice', 'Node', 'Thing'),
      data: fc.dictionary(fc.constantFrom('signedNonce', 'authParams', 'conditions', 'ready', 'x'), fc.jsonValue()),
    })
    .map(({ kind, data }) => object(kind, 'milan', data as Record<string, unknown>)),
);
const closed: ClusterFacts = { ...openFacts, policies: [] };
const anySide = (role: PeeringRole) =>
  fc.record({
    facts: fc.constantFrom(openFacts, openFacts, openFacts, closed),
    lastSeenAt: fc.constantFrom(now, now - 60_000, now - 200_000),
    left: fc.boolean().map((b) => b && role === 'provider'),
    objects: fc.option(fc.array(anyObject, { maxLength: 5 }), { nil: undefined }),
    applied: fc.nat(6),
    refused: fc.boolean(),
  });
const anyMoment = fc.record({
  consumer: anySide('consumer'),
  provider: anySide('provider'),
  opposite: fc.boolean(),
  after: fc.constantFrom(0, 100, 20_000, 31_000, 51_000),
  unpeer: fc.boolean(),
});

describe('any course of reports', () => {
  test('leads to answers that are stable, consistent, and never both ready and absent', () => {
    fc.assert(
      fc.property(fc.array(anyMoment, { minLength: 1, maxLength: 8 }), (moments) => {
        let state = initialState;
        let time = now;
        let revision = 0;
        let unpeerRequestedAt: number | undefined;
        const desired: Partial<Record<PeeringRole, DesiredRecord>> = {};
        for (const moment of moments) {
          time += moment.after;
          if (moment.unpeer) unpeerRequestedAt ??= time;
          // No agent has applied what was not written yet.
          const known = revision;
          const of = (role: PeeringRole): SideInput => {
            const { objects, applied, refused, ...rest } = moment[role];
            const refusals = refused ? refusal('policy_refused') : [];
            const observed =
              objects && reported(role, objects, { appliedRevision: Math.min(applied, known), refusals });
            const wanted = desired[role];
            return {
              ...rest,
              offlineFrom: rest.lastSeenAt + 90_000,
              ...(observed ? { observed } : {}),
              ...(wanted ? { desired: wanted } : {}),
            };
          };
          const at = (before: PeeringState): ReconcileInput => ({
            spec: unpeerRequestedAt === undefined ? spec : { ...spec, unpeerRequestedAt },
            state: before,
            consumer: of('consumer'),
            provider: of('provider'),
            opposite: moment.opposite,
            now: time,
          });
          const result = reconcilePeering(at(state));
          expect(canonical(reconcilePeering(at(state)))).toBe(canonical(result));
          const before = state;
          state = result.state;
          for (const [role, content] of [
            ['consumer', result.desiredConsumer],
            ['provider', result.desiredProvider],
          ] as const) {
            const old = desired[role];
            if (old) expect(content).toBeDefined();
            if (old?.state === 'absent') expect(content?.state).toBe('absent');
            if (old?.peerDead) expect(content?.peerDead).toBe(true);
            if (
              !content ||
              (old &&
                canonical([old.state, old.peerDead, old.objects]) ===
                  canonical([content.state, content.peerDead, content.objects]))
            )
              continue;
            revision += 1;
            const absentRevision = content.state === 'absent' ? (old?.absentRevision ?? revision) : undefined;
            const { state: wanted, peerDead, objects } = content;
            desired[role] = {
              peering: 'pe_1',
              role,
              peer: 'x',
              revision,
              state: wanted,
              peerDead,
              objects,
              ...(absentRevision === undefined ? {} : { absentRevision }),
            };
          }
          const again = reconcilePeering(at(state));
          expect(canonical([again.desiredConsumer, again.desiredProvider])).toBe(
            canonical([result.desiredConsumer, result.desiredProvider]),
          );
          const states = [result.desiredConsumer?.state, result.desiredProvider?.state];
          if (state.phase === 'Ready') expect(states).toEqual(['present', 'present']);
          if (states.includes('absent')) expect(['Unpeering', 'Gone']).toContain(state.phase);
          if (before.phase === 'Gone') expect(state.phase).toBe('Gone');
          if (before.removal) expect(state.removal).toMatchObject(before.removal);
          if (state.removal && time >= state.removal.startedAt + 50_000) expect(state.phase).toBe('Gone');
          if (state.phase === 'Unpeering')
            expect(result.nextLook).toBeLessThanOrEqual((state.removal?.startedAt ?? 0) + 50_000);
          if (result.nextLook !== undefined) expect(result.nextLook).toBeGreaterThan(time);
        }
      }),
      { numRuns: countOf(2_000, 400) },
    );
  }, 300_000);
});

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
