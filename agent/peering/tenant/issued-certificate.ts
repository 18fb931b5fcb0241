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
