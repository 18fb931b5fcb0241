/** Which credentials take the place of those that an Identity has, and where the provider hands it out once that has ended. Pure. */
import { X509Certificate } from 'node:crypto';
import { credentialOf } from '#agent/model/peer-credentials.ts';
import { reachedAt, remoteRanges } from '#agent/network/addresses/remote-address.ts';
import { lifetimeOf } from '#agent/pki/certificate.ts';
import { fromBase64 } from '#agent/pki/pem.ts';
import { isWithin } from '#shared/domain/cidr.ts';
import type { AuthParams } from '#shared/schema/definition/fields.ts';
import type { Configuration } from '#shared/schema/liqo/configuration.ts';
import type { Identity } from '#shared/schema/liqo/identity.ts';
import type { Renew } from '#shared/schema/liqo/renew.ts';

/** The credentials that a provider's answer brings; undefined: nothing newer. */
export function renewedParams(identity: Identity, renew: Renew | undefined): AuthParams | undefined {
  const answer = renew?.status?.authParams;
  // An answer that cannot be read renews nothing; current credentials that cannot be read lose to any.
  const endMs = answer && credentialOf(answer)?.endMs;
  return endMs !== undefined && endMs > (endOf(identity) ?? Number.NEGATIVE_INFINITY) ? answer : undefined;
}

export const isControlPlane = (identity: Identity): boolean => identity.spec.type === 'ControlPlane';

/** When the credentials of an Identity end; undefined: it has none that can be read. */
export const endOf = ({ spec }: Identity): number | undefined => credentialOf(spec.authParams)?.endMs;

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
