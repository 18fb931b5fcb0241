/**
 * The end of a peering, which always comes: the consumer gives back first, then the provider takes its rights away while
 * both remove their namespaces. A side that is not done in time
 * is not waited for; its desired set stays `absent`, a tombstone that its agent finds when it returns.
 */
import { nameList } from '#shared/domain/name-list.ts';
import type { PeeringCondition } from '../../model/peering.ts';
import type { DesiredContent, PeeringSpec, PeeringState, Removal, SideInput } from '../../model/peering-records.ts';
import { linkKinds, remainingOf, shownObject } from './reports.ts';

/** A consumer that is not clean by then may be waiting for a dead provider, or be dead itself: both sides stop waiting. */
const forceAfterMs = 30_000;
/** What is not clean by then is left behind. */
const giveUpAfterMs = 50_000;

/** Between the two looks that must find a side silent before a forced end passes it over. */
const secondLookMs = 3_000;

/** Has left, or has not been heard of for longer than it may be silent. */
export const isSilent = ({ left, offlineFrom }: SideInput, now: number): boolean => left || now >= offlineFrom;

export interface RemovalInput {
  readonly spec: PeeringSpec;
  readonly state: PeeringState;
  readonly consumer: SideInput;
  readonly provider: SideInput;
  /** The pair is also peered the other way around and shares the tenant namespaces. */
  readonly opposite: boolean;
  readonly now: number;
}

export interface RemovalResult {
  readonly removal: Removal;
  readonly conditions: readonly Omit<PeeringCondition, 'since'>[];
  readonly desiredConsumer?: DesiredContent;
  readonly desiredProvider?: DesiredContent;
  readonly leftBehind: readonly string[];
  readonly nextLook?: number;
}

/** The set that was never written needs no cleaning; a written one must have been answered since it says `absent`. */
function isClean({ desired, observed }: SideInput, opposite: boolean): boolean {
  if (!desired) return true;
  if (desired.absentRevision === undefined || !observed) return false;
  return observed.appliedRevision >= desired.absentRevision && remainingOf(observed, opposite).length === 0;
}

/**
 * Nothing is left that the provider must stay for: what remains, if anything, are local objects that go by themselves. Kubernetes takes its
 * time (5 s) with a namespace; two sides that do so at once end twice as soon.
 */
const hasGivenBack = ({ desired, observed }: SideInput, opposite: boolean): boolean =>
  desired !== undefined &&
  observed !== undefined &&
  remainingOf(observed, opposite).every((object) => localKinds.has(object.slice(0, object.indexOf('/'))));

/** What goes at both sides by itself once the slices and the identity are gone. */
const localKinds: ReadonlySet<string> = new Set(['Namespace', 'Secret', ...linkKinds]);

const absent = (side: SideInput, peerDead: boolean): DesiredContent | undefined =>
  side.desired && { state: 'absent', peerDead, objects: [] };

const asBefore = ({ desired }: SideInput): DesiredContent | undefined =>
  desired && {
    state: desired.state,
    peerDead: desired.peerDead,
    objects: desired.objects,
    ...(desired.announcement === undefined ? {} : { announcement: desired.announcement }),
  };

export function advanceRemoval(input: RemovalInput): RemovalResult {
  const { spec, consumer, provider, now } = input;
  const removal = nextRemoval(input);
  const desiredConsumer = absent(consumer, removal.consumerForcedAt !== undefined);
  const desiredProvider =
    removal.providerAskedAt === undefined
      ? asBefore(provider)
      : absent(provider, removal.providerForcedAt !== undefined);
  const leftBehind = removal.endedAt === undefined ? [] : whatIsLeft(input, removal);
  const looks = [
    removal.startedAt + forceAfterMs,
    removal.startedAt + giveUpAfterMs,
    (spec.forcedAt ?? 0) + secondLookMs,
  ];
  const deadlines = looks.filter((at) => at > now);
  return {
    removal,
    leftBehind,
    conditions: [
      cleanCondition(input, removal, 'consumer', spec.consumer),
      cleanCondition(input, removal, 'provider', spec.provider),
    ],
    ...(desiredConsumer ? { desiredConsumer } : {}),
    ...(desiredProvider ? { desiredProvider } : {}),
    ...(removal.endedAt === undefined && deadlines.length > 0 ? { nextLook: Math.min(...deadlines) } : {}),
  };
}

const since = (before: number | undefined, holds: boolean, now: number): number | undefined =>
  before ?? (holds ? now : undefined);

function nextRemoval({ spec, state, consumer, provider, opposite, now }: RemovalInput): Removal {
  const before = state.removal;
  const startedAt = before?.startedAt ?? spec.unpeerRequestedAt ?? now;
  const consumerCleanAt = since(before?.consumerCleanAt, isClean(consumer, opposite), now);
  const consumerDone = consumerCleanAt !== undefined || consumer.left;
  const silent = { consumer: isSilent(consumer, now), provider: isSilent(provider, now) };
  const forced =
    spec.forcedAt !== undefined && now >= spec.forcedAt + secondLookMs && (silent.consumer || silent.provider);
  const late = (forced || now >= startedAt + forceAfterMs) && !consumerDone;
  const consumerForcedAt = since(before?.consumerForcedAt, !consumerDone && (late || provider.left), now);
  const givenBack = hasGivenBack(consumer, opposite);
  const providerAskedAt = since(before?.providerAskedAt, consumerDone || givenBack || late, now);
  const requested = providerAskedAt !== undefined;
  const providerCleanAt = since(before?.providerCleanAt, requested && isClean(provider, opposite), now);
  const providerForcedAt = since(
    before?.providerForcedAt,
    requested && (late || (consumer.left && consumerCleanAt === undefined)),
    now,
  );
  const providerDone = providerCleanAt !== undefined || provider.left;
  const finished = consumerDone && providerDone;
  const alone = forced && (consumerDone || silent.consumer) && (providerDone || silent.provider);
  const over = finished || alone || now >= startedAt + giveUpAfterMs;
  const endedAt = since(before?.endedAt, over, now);
  const finishedAt = since(before?.finishedAt, finished, now);
  return {
    startedAt,
    ...(consumerCleanAt === undefined ? {} : { consumerCleanAt }),
    ...(providerCleanAt === undefined ? {} : { providerCleanAt }),
    ...(consumerForcedAt === undefined ? {} : { consumerForcedAt }),
    ...(providerAskedAt === undefined ? {} : { providerAskedAt }),
    ...(providerForcedAt === undefined ? {} : { providerForcedAt }),
    ...(endedAt === undefined ? {} : { endedAt }),
    ...(finishedAt === undefined ? {} : { finishedAt }),
  };
}

function whatIsLeft(input: RemovalInput, removal: Removal): string[] {
  const { spec, consumer, provider, opposite } = input;
  const report = (cluster: string, side: SideInput): string => {
    const remaining = remainingOf(side.observed, opposite);
    const what = remaining.length === 0 ? 'all objects of this peering there' : remaining.join(', ');
    return side.left
      ? `${cluster}: ${what}; the cluster has left, delete it there by hand`
      : `${cluster}: ${what}; its agent has not confirmed the removal and will do it when it is back`;
  };
  return [
    ...(removal.consumerCleanAt === undefined ? [report(spec.consumer, consumer)] : []),
    ...(removal.providerCleanAt === undefined ? [report(spec.provider, provider)] : []),
  ];
}

function cleanCondition(
  { spec, consumer, provider, opposite }: RemovalInput,
  removal: Removal,
  side: 'consumer' | 'provider',
  cluster: string,
): Omit<PeeringCondition, 'since'> {
  const here = side === 'consumer' ? consumer : provider;
  const cleanAt = side === 'consumer' ? removal.consumerCleanAt : removal.providerCleanAt;
  const type = side === 'consumer' ? 'ConsumerClean' : 'ProviderClean';
  const not = (reason: string, message: string, action = ''): Omit<PeeringCondition, 'since'> => ({
    type,
    side,
    status: 'False',
    reason,
    message,
    action,
  });
  if (cleanAt !== undefined) {
    return {
      type,
      side,
      status: 'True',
      reason: 'Clean',
      message: `nothing of this peering is left in ${cluster}`,
      action: '',
    };
  }
  if (here.left)
    return not('ClusterLeft', `${cluster} has left and will not report`, `delete what is left in ${cluster} by hand`);
  if (side === 'provider' && removal.providerAskedAt === undefined) {
    return not('WaitingForConsumer', `${cluster} keeps its side until ${spec.consumer} has given everything back`);
  }
  const [refusal] = here.observed?.refusals ?? [];
  if (refusal)
    return not(
      'Refused',
      `${cluster} refuses to remove ${shownObject(refusal)}: ${refusal.message}`,
      `correct that in ${cluster}`,
    );
  const remaining = remainingOf(here.observed, opposite);
  const left = remaining.length === 0 ? 'to confirm that nothing is left' : `to remove ${nameList(remaining)}`;
  if (removal.endedAt !== undefined) {
    return not(
      'LeftBehind',
      `${cluster} still has ${left}, and does so when its agent is back`,
      `start the agent of ${cluster}`,
    );
  }
  const forced = side === 'consumer' ? removal.consumerForcedAt : removal.providerForcedAt;
  return forced === undefined
    ? not('Removing', `waiting for ${cluster} ${left}`)
    : not('RemovingAlone', `waiting for ${cluster} ${left}, without its peer`);
}
