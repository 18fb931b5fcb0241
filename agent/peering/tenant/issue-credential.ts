/** Gives a consumer identity the credentials that this cluster can give. */
import type { Subject } from '#agent/pki/certificate-request.ts';
import { toBase64 } from '#agent/pki/pem.ts';
import type { Cache } from '#kube/model/types.ts';
import type { Secret } from '#shared/domain/kube-object.ts';
import type { AuthParams } from '#shared/schema/definition/fields.ts';
import type { Tenant } from '#shared/schema/liqo/tenant.ts';
import { awaitedChoice, choiceOf } from '../credentials/choice.ts';
import { doorOf, doorParams, readDoor } from '../credentials/front-door.ts';
import { ensureDoorCertificate } from '../credentials/issue-door-certificate.ts';
import { type Credential, type CredentialIssue, ensureToken, heldToken } from '../credentials/issue-token.ts';
import { credentialSecretName, readToken } from '../credentials/issued-token.ts';
import type { PeeringConfig } from '../model/deps.ts';
import { ensureCertificate, type IssueDeps } from './issue-certificate.ts';
import { certificateSecretName, type Holder, readIssued } from './issued-certificate.ts';

export interface CredentialDeps extends IssueDeps {
  readonly config: PeeringConfig;
  /** Of the one Secret with the key pair of this cluster. */
  readonly keys: Cache<Secret>;
}

/** `csrPem` must have been checked against `subject`. */
export async function ensureCredential(
  deps: CredentialDeps,
  tenant: Tenant,
  holder: Holder,
  { subject, csrPem }: { readonly subject: Subject; readonly csrPem: string },
  signal: AbortSignal,
): Promise<CredentialIssue> {
  const door = doorOf(tenant);
  if (door !== undefined) {
    if ('problem' in door) return { state: 'waiting', on: door.problem };
    return ensureDoorCertificate(deps, holder, { subject, csrPem, apiServer: door.apiServer }, signal);
  }
  const choice = choiceOf(deps.config, deps.keys.list()[0]);
  if (choice === undefined) return { state: 'waiting', on: awaitedChoice };
  if (choice.kind === 'token') return ensureToken(deps, holder, csrPem, signal);
  const issue = await ensureCertificate(deps, holder, subject, csrPem, signal);
  if (issue.state !== 'issued') return issue;
  const { certificate, fresh: _, ...rest } = issue;
  return { ...rest, credential: { signedCRT: certificate } };
}

type Place = Pick<Holder, 'namespace' | 'slice'>;

const secretsOf = (cache: Cache<Secret>, { namespace, slice }: Place) => {
  const of = slice === undefined ? {} : { slice };
  return {
    certificate: cache.get({ namespace, name: certificateSecretName(of) }),
    token: cache.get({ namespace, name: credentialSecretName(of) }),
  };
};

/** base64 of the request for which an identity was given credentials last; undefined: it has none. */
export function requestOf(cache: Cache<Secret>, place: Place): string | undefined {
  const { certificate, token } = secretsOf(cache, place);
  const [signed, sealed] = [readIssued(certificate), readToken(token) ?? readDoor(token)];
  const isTokenLast = sealed !== undefined && sealed.issuedAtMs >= (signed?.issuedAtMs ?? 0);
  return isTokenLast ? sealed.csr : certificate?.data?.csr;
}

/** What an identity was given last for this request and can still use. */
export function heldCredential(
  cache: Cache<Secret>,
  tenant: Tenant,
  place: Place,
  csr: string | undefined,
  isValid: (certificate: string) => boolean,
  nowMs: number,
): Credential | undefined {
  const { certificate, token } = secretsOf(cache, place);
  const issued = readIssued(certificate);
  const isSigned = issued !== undefined && issued.csr === csr && isValid(issued.certificate);
  const signed = isSigned ? { signedCRT: issued.certificate } : undefined;
  const way = doorOf(tenant);
  const door = readDoor(token);
  // A certificate for the front door opens nothing once the Tenant asks for another way.
  const isOpen = door !== undefined && way !== undefined && 'apiServer' in way && way.apiServer === door.apiServer;
  const isAtDoor = isOpen && door.csr === csr && isValid(door.certificate);
  const other = isAtDoor ? doorParams(door) : heldToken(token, csr, nowMs);
  const otherAt = (door ?? readToken(token))?.issuedAtMs ?? 0;
  return otherAt >= (issued?.issuedAtMs ?? 0) ? (other ?? signed) : (signed ?? other);
}

/** What a consumer is told: how to come, and with what. */
export const accessParams = (
  { apiServerUrl, apiServerCa }: PeeringConfig,
  { spec: { proxyURL } }: Tenant,
  credential: Credential,
): AuthParams => ({
  ca: toBase64(apiServerCa),
  apiServer: apiServerUrl,
  // The front door is reached without a proxy.
  ...(proxyURL && credential.apiServer === undefined && { proxyURL }),
  ...credential,
});
