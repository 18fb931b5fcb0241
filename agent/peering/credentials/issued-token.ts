/**
 * The token of one consumer identity as its provider keeps it: sealed, in the Secret that it is bound to. Deleting that Secret ends every token that was ever
 * bound to it. Pure.
 */
import type { KeyObject } from 'node:crypto';
import { accountOf } from '#agent/model/peer-accounts.ts';
import { fingerprintOf } from '#agent/pki/cluster-keys.ts';
import { fromBase64, toBase64 } from '#agent/pki/pem.ts';
import { readSealedToken } from '#agent/pki/sealed-token.ts';
import type { Applied } from '#kube/model/types.ts';
import { type ServiceAccount, secrets, serviceAccounts } from '#shared/domain/core-kinds.ts';
import { apiVersionOf, type Secret } from '#shared/domain/kube-object.ts';
import { isthmusLabel, label } from '#shared/domain/liqo-keys.ts';
import type { Holder } from '../tenant/issued-certificate.ts';

export const issuedAtAnnotation = 'isthmus.dev/issued-at';
/** UID of the Secret that the token was bound to: one that was deleted and made again ended it. */
const boundToAnnotation = 'isthmus.dev/bound-to';

/** A day: a renewal fails at most twelve hours before anybody is cut off. */
export const tokenSeconds = 24 * 3600;
/** Less is not what an API server gives: the clocks differ. */
const leastMs = 600_000;

export const credentialSecretName = ({ slice }: Pick<Holder, 'slice'>): string =>
  slice === undefined ? 'isthmus-credential-peer' : `isthmus-credential-slice-${slice}`;

export interface IssuedToken {
  /** base64 of the PEM request that it was issued for. */
  readonly csr: string;
  readonly sealed: string;
  readonly endMs: number;
  /** Fingerprint of the cluster key that opens it. */
  readonly key: string;
  readonly issuedAtMs: number;
}

/** Undefined: there is no token yet, or it was bound to a Secret that is gone. */
export function readToken(secret: Secret | undefined): IssuedToken | undefined {
  const { csr, sealedToken } = secret?.data ?? {};
  const { annotations = {}, uid, deletionTimestamp } = secret?.metadata ?? {};
  if (csr === undefined || sealedToken === undefined || deletionTimestamp !== undefined) return undefined;
  const sealed = fromBase64(sealedToken);
  const header = readSealedToken(sealed);
  const issuedAtMs = Date.parse(annotations[issuedAtAnnotation] ?? '');
  if (header === undefined || Number.isNaN(issuedAtMs) || annotations[boundToAnnotation] !== uid) return undefined;
  return { csr, sealed, ...header, issuedAtMs };
}

/** When half of its life is over, by our own clock. */
export function renewalOf({ endMs, issuedAtMs }: Pick<IssuedToken, 'endMs' | 'issuedAtMs'>): number {
  const lifeMs = Math.min(Math.max(endMs - issuedAtMs, leastMs), tokenSeconds * 1000);
  return issuedAtMs + lifeMs / 2;
}

export type TokenStep =
  | { readonly do: 'keep'; readonly token: IssuedToken; readonly renewAtMs: number }
  /** `held`: what the consumer has until then. */
  | { readonly do: 'issue'; readonly held: IssuedToken | undefined };

/** How far our clock may jump back before a token counts as of unknown age. */
const jumpMs = 300_000;

/** `to`: the key that the consumer has now. */
export function decideToken(secret: Secret | undefined, csr: string, to: KeyObject, nowMs: number): TokenStep {
  const token = readToken(secret);
  if (token === undefined || token.csr !== csr || token.key !== fingerprintOf(to))
    return { do: 'issue', held: undefined };
  const renewAtMs = renewalOf(token);
  if (token.issuedAtMs > nowMs + jumpMs || renewAtMs <= nowMs)
    return { do: 'issue', held: token.endMs > nowMs ? token : undefined };
  return { do: 'keep', token, renewAtMs };
}

const labelsOf = (holder: Holder): Record<string, string> => ({
  [label.managed]: 'true',
  [label.remoteClusterId]: holder.consumer,
  ...(holder.slice === undefined ? {} : { [label.resourceSliceName]: holder.slice }),
});

export const buildAccount = (holder: Holder): Applied<ServiceAccount> => ({
  apiVersion: apiVersionOf(serviceAccounts),
  kind: serviceAccounts.kind,
  metadata: {
    name: accountOf(holder.slice),
    namespace: holder.namespace,
    labels: labelsOf(holder),
    ownerReferences: [holder.owner],
  },
  automountServiceAccountToken: false,
});

/** Without `token`: what a token can be bound to. */
export function buildCredentialSecret(
  holder: Holder,
  token?: Pick<IssuedToken, 'csr' | 'sealed' | 'issuedAtMs'> & { readonly boundTo: string },
): Applied<Secret> {
  return {
    apiVersion: apiVersionOf(secrets),
    kind: secrets.kind,
    metadata: {
      name: credentialSecretName(holder),
      namespace: holder.namespace,
      labels: { ...labelsOf(holder), [isthmusLabel.credentialOf]: accountOf(holder.slice) },
      ownerReferences: [holder.owner],
      ...(token && {
        annotations: {
          [issuedAtAnnotation]: new Date(token.issuedAtMs).toISOString(),
          [boundToAnnotation]: token.boundTo,
        },
      }),
    },
    ...(token && { data: { csr: token.csr, sealedToken: toBase64(token.sealed) } }),
  };
}
