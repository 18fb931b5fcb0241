/** Which certificate takes the place of the one that an Identity has, and where the provider hands it out once that has ended. Pure. */
import { X509Certificate } from 'node:crypto';
import { reachedAt, remoteRanges } from '#agent/network/addresses/remote-address.ts';
import { isNewer, lifetimeOf } from '#agent/pki/certificate.ts';
import { fromBase64 } from '#agent/pki/pem.ts';
import { isWithin } from '#shared/domain/cidr.ts';
import type { AuthParams } from '#shared/schema/definition/fields.ts';
import type { Configuration } from '#shared/schema/liqo/configuration.ts';
import type { Identity } from '#shared/schema/liqo/identity.ts';
import type { Renew } from '#shared/schema/liqo/renew.ts';

/** The credentials that a provider's answer brings; undefined: nothing newer. */
export function renewedParams(identity: Identity, renew: Renew | undefined): AuthParams | undefined {
  const answer = renew?.status?.authParams;
  if (answer?.signedCRT === undefined) return undefined;
  const current = identity.spec.authParams.signedCRT;
  if (answer.signedCRT === current) return undefined;
  try {
    return isNewer(fromBase64(answer.signedCRT), current === undefined ? undefined : fromBase64(current))
      ? answer
      : undefined;
  } catch {
    // An answer that is no certificate renews nothing; a current one that is none loses to any certificate.
    return parses(answer.signedCRT) ? answer : undefined;
  }
}

const parses = (certificate: string): boolean => {
  try {
    return isNewer(fromBase64(certificate), undefined);
  } catch {
    return false;
  }
};

export const isControlPlane = (identity: Identity): boolean => identity.spec.type === 'ControlPlane';

/** When the certificate of an Identity ends; undefined: it has none that can be read. */
export function endOf(identity: Identity): number | undefined {
  const { signedCRT } = identity.spec.authParams;
  try {
    return signedCRT === undefined ? undefined : lifetimeOf(fromBase64(signedCRT)).notAfterMs;
  } catch {
    return undefined;
  }
}

/** What this cluster calls the address at which the provider said to come. Nothing but an address in the provider's external range counts. */
export function recoveryHost(renew: Renew | undefined, configuration: Configuration | undefined): string | undefined {
  const address = renew?.status?.recoveryIP;
  const external = configuration?.spec.remote.cidr.external ?? [];
  // Without a range to be in, `isWithin` lets everything pass.
  if (address === undefined || external.length === 0 || !isWithin(`${address}/32`, external)) return undefined;
  return reachedAt(remoteRanges(configuration), address);
}

/**
 * Why this answer (PEM) is not the next certificate of `identity`; undefined: it is. The source need not be trusted: a certificate of the same name
 * for the same key is useful to this cluster only.
 */
export function objection(answer: string, identity: Identity, nowMs: number): string | undefined {
  const current = fromBase64(identity.spec.authParams.signedCRT ?? '');
  try {
    const [had, next] = [new X509Certificate(current), new X509Certificate(answer)];
    if (!next.publicKey.equals(had.publicKey)) return 'it is for another key than ours';
    if (next.subject !== had.subject) return 'it is for another name than ours';
    if (lifetimeOf(answer).notAfterMs <= nowMs) return 'it has ended, too';
    return undefined;
  } catch {
    return 'it is no certificate';
  }
}
