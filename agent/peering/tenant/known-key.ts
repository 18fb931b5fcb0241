/** Whether the key of a Tenant is the one that this consumer was certified with, and if not, what approves the change. Pure. */
import type { KeyObject } from 'node:crypto';
import { readCertificateRequest } from '#agent/pki/certificate-request.ts';
import { fingerprintOf, isSuccession, readPublicKey } from '#agent/pki/cluster-keys.ts';
import { fromBase64 } from '#agent/pki/pem.ts';
import { isthmusAnnotation } from '#shared/domain/liqo-keys.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { Tenant } from '#shared/schema/liqo/tenant.ts';

export type KnownKey =
  /** `by`: absent where nothing changed. */
  | { readonly ok: true; readonly by?: 'succession' | 'consent' }
  | { readonly ok: false; readonly reason: string; readonly message: string };

/**
 * `storedCsr`: base64 of the request that this consumer's certificate was issued for; absent: it has none. Refuses with `PeerKeyChanged` a peer of
 * the same ID with another key, until its former key or an administrator here approves the new one.
 */
export function validateKey(tenant: Tenant, storedCsr: string | undefined): KnownKey {
  const former = storedCsr === undefined ? undefined : keyIn(storedCsr);
  if (former === undefined) return { ok: true };
  const next = readPublicKey(Buffer.from(tenant.spec.publicKey ?? '', 'base64'));
  if (next.equals(former)) return { ok: true };
  const { [isthmusAnnotation.keySuccession]: succession, [isthmusAnnotation.acceptKey]: accepted } =
    tenant.metadata.annotations ?? {};
  if (succession !== undefined && isSuccession(former, next, Buffer.from(succession, 'base64')))
    return { ok: true, by: 'succession' };
  const fingerprint = fingerprintOf(next);
  if (accepted === fingerprint) return { ok: true, by: 'consent' };
  const { name, namespace } = tenant.metadata;
  return {
    ok: false,
    reason: 'PeerKeyChanged',
    message: `${tenant.spec.clusterID} was certified with key ${fingerprintOf(former)} and now comes with ${fingerprint}: an earlier life of this cluster, or another cluster of the same ID; if its administrator confirms that key: kubectl annotate tenant -n ${namespace} ${name} ${isthmusAnnotation.acceptKey}=${fingerprint} --overwrite`,
  };
}

/** Undefined: no request, so there is no known key. */
function keyIn(csr: string): KeyObject | undefined {
  try {
    return readCertificateRequest(fromBase64(csr)).publicKey;
  } catch (error) {
    if (error instanceof AppError) return undefined;
    throw error;
  }
}
