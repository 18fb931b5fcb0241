/**
 * The state machine of a peering as one pure function: from what was asked, what is remembered and what both sides report, to phase,
 * conditions and what each side should look like. Applying its answer and calling it again with the same reports changes nothing.
 */
import type { KubeManifest, PeeringRole } from '#shared/schema/protocol/agent-protocol.ts';
import type { Link, LinkLayout } from '../../model/link.ts';
import type { PeeringCondition, Phase } from '../../model/peering.ts';
import type { DesiredContent, PeeringSpec, PeeringState, SideInput } from '../../model/peering-records.ts';
import type { Condition } from '../core/condition.ts';
import { unreadable } from '../core/observed.ts';
import { otherRole } from '../core/roles.ts';
import { networkCondition } from '../link/condition.ts';
import { isLinked, nextLink } from '../link/decide.ts';
import { linkObjects } from '../link/desired-objects.ts';
import { type ProxyPath, proxyPath } from '../link/proxy-path.ts';
import { readEnd } from '../link/reports.ts';
import { ownersOf, validateConsumer, validateProvider } from '../terms/consent.ts';
import {
  authenticatedCondition,
  consentCondition,
  endedInCluster,
  grantedCondition,
  lapsedCondition,
  nodeCondition,
  onlineCondition,
  refusalOf,
} from './conditions.ts';
import { consumerObjects, peeringNames, providerObjects } from './desired-objects.ts';
import { advanceRemoval } from './removal.ts';
import { type ConsumerReport, readConsumer, readProvider } from './reports.ts';

export interface ReconcileInput {
  readonly spec: PeeringSpec;
  readonly state: PeeringState;
  readonly consumer: SideInput;
  readonly provider: SideInput;
  /** The pair is also peered the other way around and shares the tenant namespaces. */
  readonly opposite: boolean;
  /** How that one has laid out the link that both share, if it has one. */
  readonly oppositeLink?: LinkLayout;
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
    endedIn(input) !== undefined ||
    lapseOf(input) !== undefined;
  return ending ? reconcileEnding(input) : reconcileLiving(input);
}

/** Why an agreement across tenants ends before it began. What both clusters have agreed to ends by unpeering only. */
function lapseOf({ spec, state, withdrawn, now }: ReconcileInput): 'Withdrawn' | 'Lapsed' | undefined {
  if (!spec.across || state.consentedAt !== undefined) return undefined;
  if (withdrawn) return 'Withdrawn';
  return now >= spec.across.grant.lapsesAt ? 'Lapsed' : undefined;
}

/** The side where a user ended the peering without the broker, by deleting the objects that carry it. */
const endedIn = ({ consumer, provider }: ReconcileInput): PeeringRole | undefined => {
  if (consumer.observed?.ended) return 'consumer';
  return provider.observed?.ended ? 'provider' : undefined;
};

function reconcileLiving(input: ReconcileInput): ReconcileResult {
  const { spec, state: before, consumer, provider, now } = input;
  const online = onlineOf(input);
  const report = readConsumer(consumer.observed, peeringNames(spec));
  const { issued = before.issued } = readProvider(provider.observed, peeringNames(spec).tenant);
  const { signed = before.signed } = report;
  const { granted = before.granted } = report;
  const owners = ownersOf(input.tenant, spec.across);
  const consent = consentCondition(spec, {
    consumer: validateConsumer(consumer.facts, spec, owners.ofProvider),
    provider: validateProvider(provider.facts, spec, owners.ofConsumer),
  });
  // Consent that was given stays given: what has been agreed ends by unpeering, not by editing a policy.
  const consentedAt = before.consentedAt ?? (consent.status === 'True' ? now : undefined);
  const announced = announcedBy(input);
  const learnt: PeeringState = {
    ...before,
    ...announced,
    ...(signed ? { signed } : {}),
    ...(issued ? { issued } : {}),
    ...(granted ? { granted } : {}),
    ...(consentedAt === undefined ? {} : { consentedAt }),
  };
  const agreed = consentedAt !== undefined;
  const network = agreed ? linkOf(input) : undefined;
  const progress = agreed
    ? progressConditions({ spec, learnt, input, report, network })
    : { conditions: [], blocked: false };
  const conditions = [
    consentedAt === undefined || consent.status === 'True'
      ? consent
      : { ...consent, status: 'True' as const, reason: 'GivenBefore', action: '' },
    onlineCondition('consumer', spec.consumer, consumer, online.consumer),
    onlineCondition('provider', spec.provider, provider, online.provider),
    ...progress.conditions,
  ];
  const bothOnline = online.consumer && online.provider;
  const phase = livingPhase({ agreed, blocked: progress.blocked, bothOnline, report, network, input, before });
  const { link: _, proxyUrl: __, warnings: ___, ...known } = learnt;
  const link = network && {
    link: network.link,
    ...(network.proxy.kind === 'proxy' ? { proxyUrl: network.proxy.url } : {}),
  };
  const state = enter(
    { ...known, ...link, ...warningsOf(input), conditions: dated(conditions, before.conditions, now) },
    phase,
    now,
  );
  const lapsesAt = agreed ? undefined : spec.across?.grant.lapsesAt;
  const nextLook = earliest([nextSilence(input), lapsesAt]);
  return {
    state,
    ...(agreed
      ? {
          desiredConsumer: present(consumerObjects(spec, issued), network, learnt, spec, 'consumer'),
          desiredProvider: present(providerSide(spec, learnt, network), network, learnt, spec, 'provider'),
        }
      : {}),
    ...(nextLook === undefined ? {} : { nextLook }),
  };
}

/** The newest of each side; what a later report lacks stays. */
function announcedBy({ state, consumer, provider }: ReconcileInput): Pick<PeeringState, 'announced'> {
  const told = {
    consumer: consumer.observed?.announcement ?? state.announced?.consumer,
    provider: provider.observed?.announcement ?? state.announced?.provider,
  };
  const known = Object.entries(told).filter(([, text]) => text !== undefined);
  return known.length === 0 ? {} : { announced: Object.fromEntries(known) };
}

function warningsOf(input: ReconcileInput): Pick<PeeringState, 'warnings'> {
  const warnings = (['consumer', 'provider'] as const).flatMap((side) =>
    unreadable(input[side].observed).map((message) => ({ side, message })),
  );
  return warnings.length === 0 ? {} : { warnings };
}

interface Network {
  readonly link: Link;
  readonly condition: Condition;
  /** Where the consumer reaches the provider's API server, if that is to be through the link. */
  readonly proxy: ProxyPath;
}

/** Undefined: this peering has none, or will have none until both agents make links. */
function linkOf(input: ReconcileInput): Network | undefined {
  const { spec, state: before, consumer, provider, oppositeLink, now } = input;
  const reports = {
    consumer: readEnd(consumer.observed, spec.provider),
    provider: readEnd(provider.observed, spec.consumer),
  };
  const link = nextLink({ spec, before: before.link, opposite: oppositeLink, consumer, provider, reports, now });
  if (!link) return undefined;
  const wasUp = before.phaseSince.Ready !== undefined;
  return {
    link,
    condition: networkCondition({ spec, link, reports, consumer, provider, wasUp }),
    proxy: proxyPath(spec, {
      provider: provider.facts,
      consumer: reports.consumer,
      known: before.proxyUrl,
      linked: isLinked(link),
    }),
  };
}

const present = (
  objects: readonly KubeManifest[],
  network: Network | undefined,
  { announced }: PeeringState,
  spec: PeeringSpec,
  side: PeeringRole,
): DesiredContent => ({
  state: 'present',
  peerDead: false,
  ...(announced?.[otherRole(side)] === undefined ? {} : { announcement: announced[otherRole(side)] }),
  objects: network ? [...objects, ...linkObjects(spec, network.link, side)] : objects,
});

/** A certificate that comes with the wrong way to the API server is of no use: the way is found first. One that was issued is kept. */
function providerSide(
  spec: PeeringSpec,
  { signed, issued }: PeeringState,
  network: Network | undefined,
): readonly KubeManifest[] {
  if (network?.proxy.kind === 'unknown' && !issued) return providerObjects(spec, undefined);
  return providerObjects(spec, signed, network?.proxy.kind === 'proxy' ? network.proxy.url : undefined);
}

interface Progress {
  readonly spec: PeeringSpec;
  readonly learnt: PeeringState;
  readonly input: ReconcileInput;
  readonly report: ConsumerReport;
  readonly network: Network | undefined;
}

function progressConditions({ spec, learnt, input, report, network }: Progress): {
  readonly conditions: readonly Condition[];
  readonly blocked: boolean;
} {
  const refusal = refusalOf(spec, input.consumer, input.provider);
  const waitsForProxy = network?.proxy.kind === 'unknown' && !learnt.issued;
  const conditions = [
    ...(network && waitsForProxy ? [network.condition] : []),
    authenticatedCondition(spec, learnt, report, waitsForProxy),
    grantedCondition(spec, report),
    ...(network && !waitsForProxy ? [network.condition] : []),
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
  readonly network: Network | undefined;
  readonly input: ReconcileInput;
  readonly before: PeeringState;
}

function livingPhase({ agreed, blocked, bothOnline, report, network, input, before }: PhaseInput): Phase {
  if (!agreed) return 'Proposed';
  const works = report.node?.ready === true && (!network || isLinked(network.link));
  const withheld = report.grant?.accepted === false;
  if (works && bothOnline && !blocked && !withheld) return 'Ready';
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
  const endedSide = endedIn(input);
  const conditions = [
    ...(lapse ? [lapsedCondition(spec, lapse)] : []),
    ...(endedSide ? [endedInCluster(spec, endedSide)] : []),
    onlineCondition('consumer', spec.consumer, consumer, online.consumer),
    onlineCondition('provider', spec.provider, provider, online.provider),
    ...result.conditions,
  ];
  const phase: Phase = removal.endedAt === undefined ? 'Unpeering' : 'Gone';
  const { link, warnings: _, ...kept } = before;
  const last = phase === 'Gone' || !link ? {} : { link };
  const nextLook = earliest([result.nextLook, phase === 'Gone' ? undefined : nextSilence(input)]);
  return {
    state: enter(
      {
        ...kept,
        ...last,
        ...warningsOf(input),
        removal,
        leftBehind,
        conditions: dated(conditions, before.conditions, now),
      },
      phase,
      now,
    ),
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
