/** Turns the answer of the state machine into one transaction: state, both desired sets, revisions, audit, event, next look. Pure but for identifiers. */
import { sameJson } from '#shared/domain/json-equality.ts';
import type { Clock } from '#shared/ports/clock.ts';
import type { Ids } from '#shared/ports/ids.ts';
import type { PeeringRole } from '#shared/schema/protocol/agent-protocol.ts';
import { auditOps, eventOf, systemPrincipal } from '../../audit/record.ts';
import { endingLabelOps } from '../../labels/label-index.ts';
import { countOps } from '../../limits/capacity.ts';
import type { DesiredContent, DesiredRecord, PeeringRecord, RevisionRecord } from '../../model/peering-records.ts';
import type { ClusterRef } from '../../ports/agent-channel.ts';
import type { Item, Key, NewEvent, Op } from '../../ports/store.ts';
import { key } from '../../store/keys.ts';
import { otherRole } from '../core/roles.ts';
import { copyOps, homeOf, tenantsOf } from '../cross-tenant/copies.ts';
import type { ReconcileResult } from '../state-machine/decide.ts';
import type { LoadedPeering, LoadedSide } from './load.ts';

/** An ended peering can be looked up for a day. */
const goneKeptMs = 24 * 3_600_000;

export interface PlannedWrite {
  readonly ops: readonly Op[];
  readonly events: readonly NewEvent[];
  /** Whom to ring, with the revision to tell. */
  readonly rings: readonly Ring[];
  readonly dueAt?: number;
}

type Ring = ClusterRef & { readonly revision: number };

interface Planner {
  readonly clock: Clock;
  readonly ids: Ids;
}

export function planWrite(deps: Planner, loaded: LoadedPeering, result: ReconcileResult): PlannedWrite {
  const { tenant, item } = loaded;
  const now = deps.clock.now();
  const { spec, state: before } = item.value;
  const stateChanged = !sameJson(before, result.state);
  const finished = result.state.removal?.finishedAt;
  const expiresAt = finished === undefined ? undefined : finished + goneKeptMs;
  const consumer = planSide(loaded, 'consumer', result.desiredConsumer, { now, expiresAt });
  const provider = planSide(loaded, 'provider', result.desiredProvider, { now, expiresAt });
  // A Peering object inside the consumer shows phase and conditions: its agent must come and read them.
  const answers =
    stateChanged && spec.ask !== undefined && consumer.ring === undefined ? bump(loaded.consumer, now) : undefined;
  const look = planLook(loaded, finished === undefined ? result.nextLook : undefined, now);
  const changed = [
    ...consumer.ops,
    ...provider.ops,
    ...(answers?.ops ?? []),
    ...look.ops,
    ...copyOps({ spec, state: result.state }, loaded.copies, expiresAt),
    ...(stateChanged && expiresAt !== undefined ? expireIndexes(loaded, expiresAt) : []),
    ...agreement(loaded, result),
  ];
  if (!stateChanged && changed.length === 0) return { ops: [], events: [], rings: [] };
  // The look has a version of its own, and is moved to a later time only when it is due, by the first process to do so: no other condition is needed.
  if (!stateChanged && changed.length === look.ops.length) {
    return { ops: look.ops, events: [], rings: [], ...(look.dueAt === undefined ? {} : { dueAt: look.dueAt }) };
  }
  const value: PeeringRecord = { spec, state: result.state };
  const at = homeOf(tenant, spec);
  const own: Op = stateChanged
    ? { op: 'update', ...at, value, ifVersion: item.version, ...(expiresAt === undefined ? {} : { expiresAt }) }
    : { op: 'check', ...at, ifVersion: item.version };
  const { phase } = result.state;
  const subject = `peering/${spec.id}`;
  const moved = phase !== before.phase;
  const notified = moved ? tenantsOf(tenant, spec) : [];
  return {
    ops: [
      own,
      ...(spec.across ? [] : countOps(tenant, 'peerings', item.value, value)),
      ...(spec.across || expiresAt === undefined || item.expiresAt !== undefined
        ? []
        : endingLabelOps({ tenant, kind: 'peering', id: spec.id }, spec.labels, expiresAt)),
      ...changed,
      ...notified.flatMap((of) =>
        auditOps(deps, systemPrincipal(of, spec.requestId), {
          action: 'peering.phase',
          subject,
          before: { phase: before.phase },
          after: { phase },
        }),
      ),
    ],
    events: notified.map((of) =>
      eventOf(deps, of, 'peering.phase-changed', subject, {
        consumer: spec.consumer,
        provider: spec.provider,
        from: before.phase,
        to: phase,
      }),
    ),
    rings: [consumer.ring, provider.ring, answers?.ring].filter((ring) => ring !== undefined),
    ...(look.dueAt === undefined ? {} : { dueAt: look.dueAt }),
  };
}

interface SidePlan {
  readonly ops: readonly Op[];
  readonly ring?: Ring;
}

function planSide(
  loaded: LoadedPeering,
  role: PeeringRole,
  content: DesiredContent | undefined,
  { now, expiresAt }: { readonly now: number; readonly expiresAt: number | undefined },
): SidePlan {
  const side = loaded[role];
  const { spec } = loaded.item.value;
  const stored = side.desired;
  const observed = expiresAt === undefined ? [] : expire(side.observed, expiresAt);
  if (!content || (stored && sameContent(stored.value, content))) {
    return { ops: expiresAt === undefined ? [] : [...expire(stored, expiresAt), ...observed] };
  }
  const { ops: bumped, ring } = bump(side, now);
  const absentRevision = content.state === 'absent' ? (stored?.value.absentRevision ?? ring.revision) : undefined;
  const value: DesiredRecord = {
    peering: spec.id,
    role,
    peer: spec[otherRole(role)],
    ...(spec.across ? { peerTenant: spec.across[otherRole(role)] } : {}),
    revision: ring.revision,
    ...(spec.requestId === undefined ? {} : { requestId: spec.requestId }),
    state: content.state,
    peerDead: content.peerDead,
    objects: content.objects,
    ...(content.announcement === undefined ? {} : { announcement: content.announcement }),
    ...(absentRevision === undefined ? {} : { absentRevision }),
  };
  const at = key.desired(side.tenant, side.clusterId, spec.id);
  const write: Op = stored ? { op: 'update', ...at, value, ifVersion: stored.version } : { op: 'put', ...at, value };
  return {
    ops: [expiresAt === undefined ? write : { ...write, expiresAt }, ...bumped, ...observed],
    ring,
  };
}

const sameContent = (a: DesiredContent, b: DesiredContent): boolean =>
  a.state === b.state &&
  a.peerDead === b.peerDead &&
  a.announcement === b.announcement &&
  sameJson(a.objects, b.objects);

function bump({ tenant, clusterId, revision }: LoadedSide, now: number): Required<SidePlan> {
  const next = (revision?.value.revision ?? 0) + 1;
  const at = key.revision(tenant, clusterId);
  const value: RevisionRecord = { revision: next, at: now };
  const op: Op = revision ? { op: 'update', ...at, value, ifVersion: revision.version } : { op: 'put', ...at, value };
  return { ops: [op], ring: { tenant, clusterId, revision: next } };
}

/** Checks that the invitation on which both clusters' consent rests was not revoked meanwhile. */
const agreement = ({ invitation, item }: LoadedPeering, { state }: ReconcileResult): Op[] =>
  invitation && item.value.state.consentedAt === undefined && state.consentedAt !== undefined
    ? [{ op: 'check', pk: invitation.pk, sk: invitation.sk, ifVersion: invitation.version }]
    : [];

/** Gives an item its end, once. */
const expire = (item: Item | undefined, expiresAt: number): Op[] =>
  item && item.expiresAt === undefined
    ? [{ op: 'update', pk: item.pk, sk: item.sk, value: item.value, ifVersion: item.version, expiresAt }]
    : [];

/** Indexes are written once, at creation; their end comes with the peering's. The pair may have been taken over by a successor meanwhile. */
function expireIndexes({ item, pair, indexes }: LoadedPeering, expiresAt: number): Op[] {
  const { id } = item.value.spec;
  const ofPair = pair?.value.id === id ? expire(pair, expiresAt) : [];
  return [...ofPair, ...indexes.flatMap((index) => expire(index, expiresAt))];
}

function planLook(
  { tenant, item, look }: LoadedPeering,
  wanted: number | undefined,
  now: number,
): { readonly ops: readonly Op[]; readonly dueAt?: number } {
  const { id } = item.value.spec;
  // A look that is too early does no harm; moving it at each report would cost a write each.
  if (look && wanted !== undefined && look.value.at > now && look.value.at <= wanted) return { ops: [] };
  const at = key.look(tenant, id);
  const dueKey = (time: number): Key => key.due(tenant, time, id);
  if (wanted === undefined) {
    if (!look) return { ops: [] };
    return {
      ops: [
        { op: 'delete', ...at, ifVersion: look.version },
        { op: 'delete', ...dueKey(look.value.at), ifVersion: 1 },
      ],
    };
  }
  if (look?.value.at === wanted) return { ops: [] };
  return {
    ops: [
      look
        ? { op: 'update', ...at, value: { at: wanted }, ifVersion: look.version }
        : { op: 'put', ...at, value: { at: wanted } },
      ...(look ? [{ op: 'delete' as const, ...dueKey(look.value.at), ifVersion: 1 }] : []),
      { op: 'put', ...dueKey(wanted), value: { peering: id } },
    ],
    dueAt: wanted,
  };
}
