/** What the checks before an installation are given. Pure. */
import type { ClusterFacts } from '#cli/platform/facts.ts';
import type { FoundProfile } from '#cli/platform/profiles.ts';
import type { CredentialSetting } from '#shared/domain/credential-setting.ts';
import type { AppError } from '#shared/errors/app-error.ts';
import type { CheckName, Finding, Stop } from './findings.ts';

export interface Right {
  readonly verb: string;
  /** `deployments.apps`, as kubectl writes it. */
  readonly resource: string;
}

/** What the cluster tells of its signer `kubernetes.io/kube-apiserver-client`. */
export interface SignerFacts {
  /** As installed, or as told now. */
  readonly setting: CredentialSetting;
  /** Finding of an installed agent that was left to choose. */
  readonly found?: { readonly kind: string; readonly reason: string };
  /** Arguments of kube-controller-manager, where it runs in a pod. */
  readonly controllerManager?: readonly string[];
  /** Name of a request that this signer has signed; Kubernetes keeps them for an hour. */
  readonly signed?: string;
}

export interface CheckFacts {
  readonly cluster: ClusterFacts;
  readonly found: FoundProfile;
  /** The user of the kubeconfig as the API server knows it; empty: it does not say. */
  readonly user: string;
  readonly missingRights: readonly Right[];
  /** What is in the way or was here before. */
  readonly agent: { readonly clusterId?: string; readonly image?: string } | { readonly refusal: AppError };
  readonly signer: SignerFacts;
  /** What the API server says to a trial, in its own words; undefined: it accepts it. Absent: the user has no right to try. */
  readonly trials?: {
    /** A namespace that is labelled for privileged pods. */
    readonly namespace?: string | undefined;
    /** A privileged pod where no label says what is allowed. */
    readonly pod?: string | undefined;
  };
  /** Milliseconds that the clock here is ahead of the API server's; undefined: it sends no time. */
  readonly clockAheadMs?: number | undefined;
  /** Undefined: no network is wanted. */
  readonly ranges?: { readonly notes: readonly string[] } | { readonly refusal: AppError };
  readonly apiUrl: { readonly url: string } | { readonly refusal: AppError };
  /** `kubectl` with the kubeconfig and context of this command. */
  readonly kubectl: string;
}

export type Rule = (facts: CheckFacts) => Finding | readonly Finding[];

/** A refusal of a later step, known now. */
export function stopOf(check: CheckName, { code, message, detail, facts }: AppError): Stop {
  const remedy = typeof detail.remedy === 'string' ? detail.remedy : facts.remedy;
  return { check, outcome: 'stop', code, text: message, remedy, detail };
}
