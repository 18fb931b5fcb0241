/** What holds for every course of reports that the agents of a peering could send, sensible or not. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { canonical } from '#shared/domain/canonical-json.ts';
import type { ClusterFacts, PeeringRole } from '#shared/schema/protocol/agent-protocol.ts';
import { countOf } from '#test/harness/cases.ts';
import type { DesiredRecord, PeeringState, SideInput } from '../../model/peering-records.ts';
import { openFacts } from '../../testing/simulated-cluster.ts';
import { initialState } from '../core/peering-state.ts';
import { type ReconcileInput, reconcilePeering } from './decide.ts';
import { identity, node, now, object, refusal, reported, secret, slice, spec, tenant } from './testing/reports.ts';

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
