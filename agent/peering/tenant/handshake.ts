/** Whether a Tenant proves that it speaks for the consumer it names. Pure. */
import { controlPlaneSubject } from '#agent/model/peer-user.ts';
import { checkCertificateRequest } from '#agent/pki/certificate-request.ts';
import { readPublicKey, verifyWith } from '#agent/pki/cluster-keys.ts';
import { fromBase64 } from '#agent/pki/pem.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { Tenant } from '#shared/schema/liqo/tenant.ts';

export type Handshake =
  | { readonly ok: true; readonly csrPem: string }
  | { readonly ok: false; readonly reason: string; readonly message: string };

/** `nonce`: as in the Secret, base64. */
export function checkHandshake(tenant: Tenant, nonce: string): Handshake {
  const { clusterID, publicKey, csr, signature } = tenant.spec;
  for (const [field, value] of Object.entries({ publicKey, csr, signature })) {
    if (!value)
      return {
        ok: false,
        reason: 'IncompleteTenant',
        message: `spec.${field} is missing; authzPolicy KeysExchange needs publicKey, csr and signature`,
      };
  }
  try {
    const key = readPublicKey(Buffer.from(publicKey ?? '', 'base64'));
    if (!verifyWith(key, Buffer.from(nonce, 'base64'), Buffer.from(signature ?? '', 'base64'))) {
      return {
        ok: false,
        reason: 'SignatureVerificationFailed',
        message: `spec.signature is not the signature of this cluster's nonce for ${clusterID} by spec.publicKey; have the consumer sign the current nonce`,
      };
    }
    const csrPem = fromBase64(csr ?? '');
    checkCertificateRequest(csrPem, controlPlaneSubject(clusterID), key);
    return { ok: true, csrPem };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return { ok: false, reason: 'InvalidCSR', message: error.message };
  }
}
