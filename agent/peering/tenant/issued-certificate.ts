/** How a provider has a certificate made and where it keeps it: the CertificateSigningRequest object and the Secret of the result. */
import { createHash } from 'node:crypto';
import { toBase64 } from '#agent/pki/pem.ts';
import type { Applied } from '#kube/model/types.ts';
import type { CertificateSigningRequest } from '#shared/domain/core-kinds.ts';
import { certificateSigningRequests, secrets } from '#shared/domain/core-kinds.ts';
import { apiVersionOf, type OwnerReference, type Secret } from '#shared/domain/kube-object.ts';
import { label } from '#shared/domain/liqo-keys.ts';

/** Ours, on the Secret of an issued certificate: when, by the agent's own clock. */
const issuedAtAnnotation = 'isthmus.dev/issued-at';
export const approvalReason = 'IdentityManagerApproval';
const clientSigner = 'kubernetes.io/kube-apiserver-client';

/** Whose certificate: a consumer's, or that of one of its slices. */
export interface Holder {
  readonly consumer: string;
  readonly namespace: string;
  readonly owner: OwnerReference;
  /** Absent for the control plane. */
  readonly slice?: string;
}

export const certificateSecretName = (holder: Pick<Holder, 'slice'>): string =>
  holder.slice === undefined ? 'liqo-remote-certificate' : `liqo-remote-certificate-${holder.slice}`;

export const requestLabels = (holder: Holder): Record<string, string> => ({
  [label.managed]: 'true',
  [label.remoteTenantCsr]: 'true',
  [label.remoteClusterId]: holder.consumer,
  ...(holder.slice === undefined ? {} : { [label.resourceSliceName]: holder.slice }),
});

/**
 * The same name for the same step, so that a pass that was interrupted finds its own request again. `replaces` is the certificate that is
 * about to be renewed: a renewal gets another name than the request before it.
 */
export const requestName = (holder: Holder, csr: string, replaces: string | undefined): string =>
  `liqo-identity-${createHash('sha256')
    .update(JSON.stringify([holder.owner.uid, holder.slice ?? '', csr, replaces ?? '']))
    .digest('hex')
    .slice(0, 20)}`;

export function buildSigningRequest(
  holder: Holder,
  requestedName: string,
  csrPem: string,
  expirationSeconds: number,
): CertificateSigningRequest {
  return {
    apiVersion: apiVersionOf(certificateSigningRequests),
    kind: certificateSigningRequests.kind,
    metadata: { name: requestedName, labels: requestLabels(holder) },
    spec: {
      request: toBase64(csrPem),
      signerName: clientSigner,
      usages: ['digital signature', 'key encipherment', 'client auth'],
      expirationSeconds,
    },
  };
}

/**
 * How `found`, which has the name of `wanted`, differs from it; undefined: it is the same request, made by `self`, the user name of this agent.
 * Names can be computed by others: what is approved is compared, not found by its name alone.
 */
export function foreignRequest(
  found: CertificateSigningRequest,
  wanted: CertificateSigningRequest,
  self: string,
): string | undefined {
  const { request, signerName, usages, expirationSeconds, username } = found.spec;
  const of = wanted.spec;
  if (request !== of.request) return 'spec.request is not the request that was checked';
  if (signerName !== of.signerName) return `spec.signerName is ${signerName}, not ${of.signerName}`;
  const sorted = (all: readonly string[] | undefined): string => [...new Set(all)].sort().join(', ');
  if (sorted(usages) !== sorted(of.usages))
    return `spec.usages is ${sorted(usages) || 'empty'}, not ${sorted(of.usages)}`;
  // Another lifetime may be that of an agent that was configured otherwise before; a longer one is no longer what is granted.
  if ((expirationSeconds ?? Number.POSITIVE_INFINITY) > (of.expirationSeconds ?? Number.POSITIVE_INFINITY))
    return `spec.expirationSeconds is ${expirationSeconds ?? 'absent'}, at most ${of.expirationSeconds} is granted`;
  if (username !== self) return `it was made by ${username ?? 'an unknown user'}, not by ${self}`;
  return undefined;
}

export interface IssuedCertificate {
  /** base64 of the PEM request it was issued for. */
  readonly csr: string;
  /** base64 of the PEM certificate. */
  readonly certificate: string;
  readonly issuedAtMs: number | undefined;
}

export const readIssued = (secret: Secret | undefined): IssuedCertificate | undefined => {
  const { csr, certificate } = secret?.data ?? {};
  if (csr === undefined || certificate === undefined) return undefined;
  const issuedAt = Date.parse(secret?.metadata.annotations?.[issuedAtAnnotation] ?? '');
  return { csr, certificate, issuedAtMs: Number.isNaN(issuedAt) ? undefined : issuedAt };
};

export function buildCertificateSecret(
  holder: Holder,
  csr: string,
  certificate: string,
  nowMs: number,
): Applied<Secret> {
  return {
    apiVersion: apiVersionOf(secrets),
    kind: secrets.kind,
    metadata: {
      name: certificateSecretName(holder),
      namespace: holder.namespace,
      labels: {
        [label.managed]: 'true',
        [label.remoteClusterId]: holder.consumer,
        ...(holder.slice === undefined ? {} : { [label.resourceSliceName]: holder.slice }),
      },
      annotations: { [issuedAtAnnotation]: new Date(nowMs).toISOString() },
      ownerReferences: [holder.owner],
    },
    data: { csr, certificate },
  };
}
