/** What this cluster gives to its consumers, a certificate or a token: as it was told, or as its signer was found to be. Pure. */
import type { Secret } from '#shared/domain/kube-object.ts';
import { isthmusAnnotation } from '#shared/domain/liqo-keys.ts';
import type { CredentialKind, PeeringConfig } from '../model/deps.ts';

export interface CredentialChoice {
  readonly kind: CredentialKind;
  /** Why, in words; absent: there was no choice. */
  readonly reason?: string;
}

const isKind = (text: string | undefined): text is CredentialKind => text === 'certificate' || text === 'token';

/** `keys`: the Secret with the key pair of the cluster, which carries the finding. Undefined: not found out yet. */
export function choiceOf(
  { credentials }: Pick<PeeringConfig, 'credentials'>,
  keys: Secret | undefined,
): CredentialChoice | undefined {
  if (credentials === 'certificate') return { kind: credentials };
  if (credentials === 'token') return { kind: credentials, reason: 'the agent is told to give tokens' };
  const { [isthmusAnnotation.credentials]: kind, [isthmusAnnotation.credentialsReason]: reason = '' } =
    keys?.metadata.annotations ?? {};
  return isKind(kind) ? { kind, reason } : undefined;
}

/** For an answer that waits for the probe. */
export const awaitedChoice = 'the agent to find out whether the signer of this cluster signs certificates of peers';

/** The request of the probe, as far as it goes. */
export interface ProbeRequest {
  readonly isSigned: boolean;
  /** The signer, or a policy of the cluster, says no, in words. */
  readonly refusal?: string | undefined;
}

/** A signer that works takes a second or two, one that has just started some more. */
export const probeMs = 30_000;

/** A cluster that was found to sign nothing is asked so often. */
export const askAgainMs = 3_600_000;

/** Undefined: not decided yet. */
export function verdictOf(request: ProbeRequest, sinceMs: number, nowMs: number): CredentialChoice | undefined {
  if (request.isSigned)
    return { kind: 'certificate', reason: 'the signer of this cluster signed a request of the agent' };
  if (request.refusal !== undefined) return { kind: 'token', reason: `no certificate: ${request.refusal}` };
  if (nowMs - sinceMs < probeMs) return undefined;
  return {
    kind: 'token',
    reason: `the signer kubernetes.io/kube-apiserver-client gave no certificate for an approved request within ${probeMs / 1000} s`,
  };
}
