/** The conditions of a peering that lives: what is missing, on which side, and what to do about it. */
import { noNodeReadyReason } from '#shared/domain/liqo-keys.ts';
import { codes, type ErrorCode } from '#shared/errors/codes.ts';
import type { ObservedSet } from '#shared/schema/protocol/agent-protocol.ts';
import type { ConditionType } from '../../model/peering.ts';
import type { PeeringSpec, PeeringState, SideInput } from '../../model/peering-records.ts';
import { type Condition, holds, lacks, type Side } from '../core/condition.ts';
import type { Verdict } from '../terms/consent.ts';
import { type ConsumerReport, linkKinds, shownObject } from './reports.ts';

type Refusal = ObservedSet['refusals'][number];

export function onlineCondition(
  side: 'consumer' | 'provider',
  cluster: string,
  input: SideInput,
  online: boolean,
): Condition {
  const type = side === 'consumer' ? 'ConsumerOnline' : 'ProviderOnline';
  if (online) return holds(type, side, `the agent of ${cluster} reports`);
  if (input.left) return lacks(type, side, 'ClusterLeft', `${cluster} has left`, `join it again`);
  return lacks(
    type,
    side,
    'NotHeard',
    `the agent of ${cluster} was last heard at ${new Date(input.lastSeenAt).toISOString()}`,
    `check that the agent runs in ${cluster} and reaches the broker`,
  );
}

export function consentCondition(
  spec: PeeringSpec,
  verdicts: { readonly consumer: Verdict; readonly provider: Verdict },
): Condition {
  for (const side of ['provider', 'consumer'] as const) {
    const verdict = verdicts[side];
    const cluster = spec[side];
    if (verdict.kind === 'refused') {
      return lacks(
        'Consented',
        side,
        'PolicyRefuses',
        verdict.message,
        `ask for less, or change the PeeringPolicy of ${cluster}`,
      );
    }
    if (verdict.kind === 'undecided')
      return lacks('Consented', side, 'WaitingForConsent', verdict.message, verdict.action);
  }
  return holds('Consented', 'both', `the PeeringPolicies of ${spec.consumer} and ${spec.provider} accept it`);
}

/** Deleting the objects that carry a peering is a way to end it, on either side. */
export const endedInCluster = (spec: PeeringSpec, side: 'consumer' | 'provider'): Condition =>
  lacks(
    'Consented',
    side,
    'EndedInCluster',
    `the ${side === 'consumer' ? 'ResourceSlice or Identity' : 'Tenant'} of this peering was deleted in ${spec[side]}, which ends the peering`,
  );

/** Both sides may read it: it says nothing about either cluster. */
export const lapsedCondition = (spec: PeeringSpec, reason: 'Withdrawn' | 'Lapsed'): Condition =>
  lacks(
    'Consented',
    'both',
    reason,
    reason === 'Withdrawn'
      ? `the invitation was revoked before both clusters had agreed`
      : `not both clusters had agreed in time`,
    `ask tenant ${spec.across?.provider ?? ''} for a new invitation, or request again`,
  );

const networkKinds = new RegExp(`^(${linkKinds.join('|')})/`);
const authenticationKinds = /^(Namespace|Secret|Tenant|Identity)\//;

/** What each cluster will not do, as the condition that it keeps from becoming true. */
interface Refused {
  readonly type: 'Authenticated' | 'NetworkReady' | 'ResourcesGranted';
  readonly condition: Condition;
  /** The agent retries by itself: no action is needed yet. */
  readonly transient: boolean;
}

export function refusalOf(spec: PeeringSpec, consumer: SideInput, provider: SideInput): Refused | undefined {
  const all = [
    ...(consumer.observed?.refusals ?? []).map((refusal) => ({ side: 'consumer' as const, refusal })),
    ...(provider.observed?.refusals ?? []).map((refusal) => ({ side: 'provider' as const, refusal })),
  ];
  const first = all.find(({ refusal }) => authenticationKinds.test(refusal.object)) ?? all[0];
  if (!first) return undefined;
  const type = typeOf(first.refusal.object);
  const { code } = first.refusal;
  const known = Object.hasOwn(codes, code) ? codes[code as ErrorCode] : undefined;
  const transient = known?.retry === true;
  const condition = transient
    ? retryCondition(type, first.side, spec[first.side], first.refusal, known.remedy)
    : refusalCondition(type, first.side, spec[first.side], first.refusal);
  return { type, condition, transient };
}

function typeOf(object: string): Refused['type'] {
  if (networkKinds.test(object)) return 'NetworkReady';
  return authenticationKinds.test(object) ? 'Authenticated' : 'ResourcesGranted';
}

const refusalCondition = (type: ConditionType, side: Side, cluster: string, refusal: Refusal): Condition =>
  lacks(
    type,
    side,
    'Refused',
    `${cluster} refuses ${shownObject(refusal)}: ${refusal.message}`,
    refusal.code === 'policy_refused'
      ? `change the PeeringPolicy of ${cluster}, or unpeer`
      : `correct what the message names in ${cluster}, or unpeer`,
  );

/** Nothing is to be corrected: every peering waits a moment for what the peer signs. */
const retryCondition = (
  type: ConditionType,
  side: Side,
  cluster: string,
  refusal: Refusal,
  remedy: string,
): Condition =>
  lacks(type, side, 'Refused', `${cluster} will try ${shownObject(refusal)} again: ${refusal.message}`, remedy);

export function authenticatedCondition(
  spec: PeeringSpec,
  state: PeeringState,
  report: ConsumerReport,
  waitsForProxy = false,
): Condition {
  const { consumer, provider } = spec;
  if (report.authentication && !report.authentication.accepted) {
    const { message, reason } = report.authentication;
    return lacks(
      'Authenticated',
      'provider',
      'Denied',
      `${provider} does not accept the certificate request of ${consumer}: ${message || reason}`,
      `look at the ResourceSlice in ${provider}`,
    );
  }
  if (report.kubeconfigReady) return holds('Authenticated', 'both', `${consumer} has credentials for ${provider}`);
  if (!state.signed)
    return lacks(
      'Authenticated',
      'consumer',
      'WaitingForSignature',
      `${consumer} has not signed the nonce of ${provider} yet`,
    );
  if (waitsForProxy)
    return lacks(
      'Authenticated',
      'both',
      'WaitingForNetwork',
      `${consumer} is to reach ${provider} through the link, which is not laid out yet`,
    );
  if (!state.issued)
    return lacks(
      'Authenticated',
      'provider',
      'WaitingForCertificate',
      `${provider} has not issued a certificate for ${consumer} yet`,
      `if this lasts, look at Tenant ${consumer} in ${provider}`,
    );
  return lacks(
    'Authenticated',
    'consumer',
    'WaitingForKubeconfig',
    `${consumer} has not stored its credentials for ${provider} yet`,
  );
}

export function grantedCondition(spec: PeeringSpec, report: ConsumerReport): Condition {
  const { provider } = spec;
  if (!report.grant) {
    return lacks(
      'ResourcesGranted',
      'provider',
      'WaitingForGrant',
      `${provider} has not decided on ResourceSlice ${provider} yet`,
    );
  }
  const { accepted, message, reason } = report.grant;
  if (accepted) return holds('ResourcesGranted', 'provider', `${provider} granted the resources`);
  // The provider answers again by itself, so nothing has to be asked for in another way.
  if (reason === noNodeReadyReason) {
    return lacks(
      'ResourcesGranted',
      'provider',
      noNodeReadyReason,
      `${provider} grants nothing now: ${message || reason}`,
      `if this lasts, look at the nodes of ${provider}: one must be Ready and take pods of guests`,
    );
  }
  return lacks(
    'ResourcesGranted',
    'provider',
    'Denied',
    `${provider} denied the resources: ${message || reason}`,
    `ask for less, or change Tenant or PeeringPolicy in ${provider}`,
  );
}

export function nodeCondition(spec: PeeringSpec, report: ConsumerReport): Condition {
  const { consumer, provider } = spec;
  if (report.node?.ready) return holds('NodeReady', 'consumer', `node ${provider} is ready in ${consumer}`);
  if (!report.node) return lacks('NodeReady', 'consumer', 'NoNode', `${consumer} has not made node ${provider} yet`);
  const { reason, message } = report.node;
  return lacks(
    'NodeReady',
    'consumer',
    reason || 'NotReady',
    `node ${provider} is not ready in ${consumer}: ${message || reason || 'no reason given'}`,
    `check that ${consumer} reaches the API server of ${provider}`,
  );
}
