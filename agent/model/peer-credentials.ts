/** The credentials in the answer of a provider, which are a certificate or a sealed token, and which of our keys they are for. Pure. */
import { lifetimeOf } from '#agent/pki/certificate.ts';
import { type ClusterKeys, keysOfCertificate, type OwnKeys } from '#agent/pki/cluster-keys.ts';
import { fromBase64 } from '#agent/pki/pem.ts';
import { keysOfSealedToken, readSealedToken } from '#agent/pki/sealed-token.ts';
import type { AuthParams } from '#shared/schema/definition/fields.ts';

export type PeerCredential =
  | { readonly kind: 'certificate'; readonly pem: string; readonly endMs: number | undefined }
  | { readonly kind: 'token'; readonly sealed: string; readonly endMs: number | undefined };

/**
 * Undefined: there are none. Of both, as there may be after a provider has changed from one to the other, the one that ends later; one that cannot be
 * read, whose `endMs` is undefined, only where there is no other.
 */
export function credentialOf({ signedCRT, sealedToken }: AuthParams): PeerCredential | undefined {
  const found: PeerCredential[] = [];
  if (sealedToken) found.push({ kind: 'token', sealed: sealedToken, endMs: readSealedToken(sealedToken)?.endMs });
  if (signedCRT) found.push({ kind: 'certificate', pem: fromBase64(signedCRT), endMs: endOfCertificate(signedCRT) });
  return found.sort((a, b) => (b.endMs ?? 0) - (a.endMs ?? 0))[0];
}

function endOfCertificate(signedCRT: string): number | undefined {
  try {
    return lifetimeOf(fromBase64(signedCRT)).notAfterMs;
  } catch {
    return undefined;
  }
}

/** Of our two pairs, the one that the credentials are for; the new one where nothing says otherwise. */
export function keysOfCredentials(own: OwnKeys, authParams: AuthParams | undefined): ClusterKeys {
  const credential = authParams && credentialOf(authParams);
  if (credential?.kind !== 'token') return keysOfCertificate(own, credential?.pem);
  const sealed = readSealedToken(credential.sealed);
  return (sealed && keysOfSealedToken(own, sealed)) ?? own;
}
