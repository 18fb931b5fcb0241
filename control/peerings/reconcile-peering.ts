/**
 * The state machine of a peering as one pure function: from what was asked, what is remembered and what both sides report, to phase,
 * conditions and what each side should look like. Applying its answer and calling it again with the same reports changes nothing.
 */
import {
  authenticatedCondition,
  type Condition,
  consentCondition,
  grantedCondition,
  lapsedCondition,
  nodeCondition,
  onlineCondition,
  refusalOf,
} from './conditions.ts';
import { judgeConsumer, judgeProvider, ownersOf } from './consent.ts';
import { consumerObjects, peeringNames, providerObjects } from './desired-objects.ts';
import type { PeeringCondition, Phase } from './peering.ts';
import type { DesiredContent, PeeringSpec, PeeringState, SideInput } from './records.ts';
import { advanceRemoval } from './removal.ts';
import { type ConsumerReport, readConsumer, readProvider } from './reports.ts';

export interface ReconcileInput {
  readonly spec: PeeringSpec;
  readonly state: PeeringState;
  readonly consumer: SideInput;
  readonly provider: SideInput;
  /** The pair is also peered the other way around and shares the tenant namespaces. */
  readonly opposite: boolean;
  /** The tenant of both clusters, when it is one; policies name tenants. */
  readonly tenant?: string;
  /** Across tenants: the provider's tenant took back what it had agreed to. */
  readonly withdrawn?: boolean;
  readonly now: number;
}

export interface ReconcileResult {
  /** Phase and conditions are in here. */
  readonly state: PeeringState;
  /** Absent: nothing is asked of that side, and nothing ever was. */
  readonly desiredConsumer?: DesiredContent;
  readonly desiredProvider?: DesiredContent;
  /** When to look again if nothing happens before; absent: only an event can change anything. */
  readonly nextLook?: number;
}

export function reconcilePeering(input: ReconcileInput): ReconcileResult {
  const { spec, state, consumer, provider } = input;
  const ending =
    spec.unpeerRequestedAt !== undefined ||
    state.removal !== undefined ||
    consumer.left ||
    provider.left ||
    lapseOf(input) !== undefined;
  return ending ? reconcileEnding(input) : reconcileLiving(input);
}

/** Why an agreement across tenants ends before it began. What both clusters have agreed to ends by unpeering only. */
function lapseOf({ spec, state, withdrawn, now }: ReconcileInput): 'Withdrawn' | 'Lapsed' | undefined {
  if (!spec.across || state.consentedAt !== undefined) return undefined;
  if (withdrawn) return 'Withdrawn';
  return now >= spec.across.grant.lapsesAt ? 'Lapsed' : undefined;
}

function reconcileLiving(input: ReconcileInput): ReconcileResult {
  const { spec, state: before, consumer, provider, now } = input;
  const online = onlineOf(input);
  const report = readConsumer(consumer.observed, peeringNames(spec));
  const { issued = before.issued } = readProvider(provider.observed, peeringNames(spec).tenant);
  const { signed = before.signed } = report;
  const { granted = before.granted } = report;
  const owners = ownersOf(input.tenant, spec.across);
  const consent = consentCondition(spec, {
    consumer: judgeConsumer(consumer.facts, spec, owners.ofProvider),
    provider: judgeProvider(provider.facts, spec, owners.ofConsumer),
  });
  // Consent that was given stays given: what has been agreed ends by unpeering, not by editing a policy.
  const consentedAt = before.consentedAt ?? (consent.status === 'True' ? now : undefined);
  const learnt: PeeringState = {
    ...before,
    ...(signed ? { signed } : {}),
    ...(issued ? { issued } : {}),
    ...(granted ? { granted } : {}),
    ...(consentedAt === undefined ? {} : { consentedAt }),
  };
  const agreed = consentedAt !== undefined;
  const progress = agreed ? progressConditions(spec, learnt, input, report) : { conditions: [], blocked: false };
  const conditions = [
    consentedAt === undefined || consent.status === 'True'
      ? consent
      : { ...consent, status: 'True' as const, reason: 'GivenBefore', action: '' },
    onlineCondition('consumer', spec.consumer, consumer, online.consumer),
    onlineCondition('provider', spec.provider, provider, online.provider),
    ...progress.conditions,
  ];
  const bothOnline = online.consumer && online.provider;
  const phase = livingPhase({ agreed, blocked: progress.blocked, bothOnline, report, input, before });
  const state = enter({ ...learnt, conditions: dated(conditions, before.conditions, now) }, phase, now);
  const lapsesAt = agreed ? undefined : spec.across?.grant.lapsesAt;
  const nextLook = earliest([nextSilence(input), lapsesAt]);
  return {
    state,
    ...(agreed
      ? {
          desiredConsumer: { state: 'present', peerDead: false, objects: consumerObjects(spec, issued) },
          desiredProvider: { state: 'present', peerDead: false, objects: providerObjects(spec, signed) },
        }
      : {}),
    ...(nextLook === undefined ? {} : { nextLook }),
  };
}

function progressConditions(
  spec: PeeringSpec,
  learnt: PeeringState,
  { consumer, provider }: ReconcileInput,
  report: ConsumerReport,
): { readonly conditions: readonly Condition[]; readonly blocked: boolean } {
  const refusal = refusalOf(spec, consumer, provider);
  const conditions = [
    authenticatedCondition(spec, learnt, report),
    grantedCondition(spec, report),
    nodeCondition(spec, report),
  ].map((condition) => (refusal?.type === condition.type ? refusal.condition : condition));
  const denied = conditions.some(({ status, reason }) => status === 'False' && reason === 'Denied');
  return { conditions, blocked: refusal?.transient === false || denied };
}

interface PhaseInput {
  readonly agreed: boolean;
  /** A cluster refuses or denies: a human must move. */
  readonly blocked: boolean;
  readonly bothOnline: boolean;
  readonly report: ConsumerReport;
  readonly input: ReconcileInput;
  readonly before: PeeringState;
}

function livingPhase({ agreed, blocked, bothOnline, report, input, before }: PhaseInput): Phase {
  if (!agreed) return 'Proposed';
  const works = report.node?.ready === true;
  if (works && bothOnline && !blocked) return 'Ready';
  if (works || before.phaseSince.Ready !== undefined) return 'Degraded';
  if (blocked) return 'Failed';
  if (report.kubeconfigReady) return 'Negotiating';
  const started = [input.consumer, input.provider].every(({ observed }) => (observed?.appliedRevision ?? 0) > 0);
  return started ? 'Authenticating' : 'Connecting';
}

function reconcileEnding(input: ReconcileInput): ReconcileResult {
  const { spec, state: before, consumer, provider, now } = input;
  const { removal, leftBehind, desiredConsumer, desiredProvider, ...result } = advanceRemoval(input);
  const online = onlineOf(input);
  const lapse = lapseOf(input);
  const conditions = [
    ...(lapse ? [lapsedCondition(spec, lapse)] : []),
    onlineCondition('consumer', spec.consumer, consumer, online.consumer),
    onlineCondition('provider', spec.provider, provider, online.provider),
    ...result.conditions,
  ];
  const phase: Phase = removal.endedAt === undefined ? 'Unpeering' : 'Gone';
  const nextLook = earliest([result.nextLook, phase === 'Gone' ? undefined : nextSilence(input)]);
  return {
    state: enter({ ...before, removal, leftBehind, conditions: dated(conditions, before.conditions, now) }, phase, now),
    ...(desiredConsumer ? { desiredConsumer } : {}),
    ...(desiredProvider ? { desiredProvider } : {}),
    ...(nextLook === undefined ? {} : { nextLook }),
  };
}

function earliest(times: readonly (number | undefined)[]): number | undefined {
  const known = times.filter((at) => at !== undefined);
  return known.length === 0 ? undefined : Math.min(...known);
}

function onlineOf({ consumer, provider, now }: ReconcileInput): { consumer: boolean; provider: boolean } {
  const heard = ({ left, offlineFrom }: SideInput): boolean => !left && now < offlineFrom;
  return { consumer: heard(consumer), provider: heard(provider) };
}

/** When the next of the two sides would count as offline if it stayed silent. */
function nextSilence({ consumer, provider, now }: ReconcileInput): number | undefined {
  const ends = [consumer, provider].filter(({ left }) => !left).map(({ offlineFrom }) => offlineFrom);
  const ahead = ends.filter((at) => at > now);
  return ahead.length === 0 ? undefined : Math.min(...ahead);
}

/** A condition keeps its time as long as it keeps its status. */
function dated(conditions: readonly Condition[], before: readonly PeeringCondition[], now: number): PeeringCondition[] {
  return conditions.map((condition) => {
    const old = before.find(({ type }) => type === condition.type);
    return { ...condition, since: old?.status === condition.status ? old.since : now };
  });
}

const enter = (state: PeeringState, phase: Phase, now: number): PeeringState => ({
  ...state,
  phase,
  phaseSince: state.phaseSince[phase] === undefined ? { ...state.phaseSince, [phase]: now } : state.phaseSince,
});
