/**
 * Gives a consumer identity a token of its own ServiceAccount, and a new one when half of its life is over. The token is in this process in the clear only
 * from the answer of the API server until it is sealed, a moment later. Every step is found again after an interruption.
 */
import { accountOf } from '#agent/model/peer-accounts.ts';
import { readCertificateRequest } from '#agent/pki/certificate-request.ts';
import { toBase64 } from '#agent/pki/pem.ts';
import { sealToken } from '#agent/pki/sealed-token.ts';
import type { Cache, KubeApi } from '#kube/model/types.ts';
import { secrets, serviceAccounts } from '#shared/domain/core-kinds.ts';
import type { Secret } from '#shared/domain/kube-object.ts';
import { fieldManager } from '#shared/domain/liqo-keys.ts';
import { AppError, codeOf } from '#shared/errors/app-error.ts';
import type { Clock } from '#shared/ports/clock.ts';
import type { AuthParams } from '#shared/schema/definition/fields.ts';
import type { Holder } from '../tenant/issued-certificate.ts';
import {
  buildAccount,
  buildCredentialSecret,
  credentialSecretName,
  decideToken,
  type IssuedToken,
  readToken,
  renewalOf,
  tokenSeconds,
} from './issued-token.ts';

export interface TokenDeps {
  readonly api: KubeApi;
  readonly clock: Clock;
  readonly secretCache: Cache<Secret>;
}

/** With `apiServer` and `ca` where it is good there only, and not at the API server that all others are told. */
export type Credential = Pick<AuthParams, 'signedCRT' | 'sealedToken' | 'tokenExpiration'> &
  Partial<Pick<AuthParams, 'apiServer' | 'ca'>>;

export type CredentialIssue =
  /** `pending`: what a renewal under way waits for. */
  | { readonly state: 'issued'; readonly credential: Credential; readonly renewAtMs: number; readonly pending?: string }
  | { readonly state: 'waiting'; readonly on: string }
  | { readonly state: 'refused'; readonly reason: string; readonly message: string };

const issued = ({ sealed, endMs }: IssuedToken, renewAtMs: number, pending?: string): CredentialIssue => ({
  state: 'issued',
  credential: { sealedToken: sealed, tokenExpiration: new Date(endMs).toISOString() },
  renewAtMs,
  ...(pending !== undefined && { pending }),
});

/** `csrPem` must have been checked: the token is sealed to its key. */
export async function ensureToken(
  { api, clock, secretCache }: TokenDeps,
  holder: Holder,
  csrPem: string,
  signal: AbortSignal,
): Promise<CredentialIssue> {
  const csr = toBase64(csrPem);
  const to = readCertificateRequest(csrPem).publicKey;
  if (to.asymmetricKeyType !== 'ed25519')
    return {
      state: 'refused',
      reason: 'KeyCannotOpenTokens',
      message: `this cluster gives tokens in place of certificates, and they are sealed to Ed25519 keys; the key of ${holder.consumer} is of type ${to.asymmetricKeyType}: isthmus rotate-key there makes one`,
    };
  const ref = { namespace: holder.namespace, name: credentialSecretName(holder) };
  const known = decideToken(secretCache.get(ref), csr, to, clock.now());
  if (known.do === 'keep') return issued(known.token, known.renewAtMs);
  // The cache may not have seen yet what the previous pass stored.
  const found = await api.get(secrets, ref, signal);
  const step = decideToken(found, csr, to, clock.now());
  if (step.do === 'keep') return issued(step.token, step.renewAtMs);
  if (found?.metadata.deletionTimestamp !== undefined)
    return { state: 'waiting', on: `Secret ${ref.name}, which is being deleted, to go` };
  try {
    await api.apply(serviceAccounts, buildAccount(holder), { fieldManager: fieldManager.agent }, signal);
    const secret =
      found ?? (await api.apply(secrets, buildCredentialSecret(holder), { fieldManager: fieldManager.agent }, signal));
    const uid = secret.metadata.uid ?? '';
    const issuedAtMs = clock.now();
    const bound = { namespace: ref.namespace, account: accountOf(holder.slice), secret: { name: ref.name, uid } };
    const { token, endMs } = await requestToken(api, bound, tokenSeconds, signal);
    const sealed = await sealToken(token, to, endMs);
    const stored = buildCredentialSecret(holder, { csr, sealed, issuedAtMs, boundTo: uid });
    const made = readToken(await api.apply(secrets, stored, { fieldManager: fieldManager.agent }, signal));
    if (made === undefined) return { state: 'waiting', on: `Secret ${ref.name}, made a moment ago, to stay` };
    return issued(made, renewalOf(made));
  } catch (error) {
    const why = waitsFor(error, holder);
    if (why === undefined) throw error;
    // A token that still works is not given up because its successor is late.
    return step.held === undefined ? { state: 'waiting', on: why } : issued(step.held, clock.now() + 10_000, why);
  }
}

/** Undefined: not for us to wait. */
export function waitsFor(error: unknown, { namespace }: Holder): string | undefined {
  if (codeOf(error) === 'kube_forbidden')
    return `the right to make ServiceAccounts and their tokens in namespace ${namespace}, which RoleBinding isthmus-agent-tenant gives: ${(error as Error).message}`;
  return undefined;
}

interface TokenReply {
  readonly status?: { readonly token?: string; readonly expirationTimestamp?: string };
}

/** An account, and the Secret whose deletion ends the token. */
export interface BoundAccount {
  readonly namespace: string;
  readonly account: string;
  readonly secret: { readonly name: string; readonly uid: string };
}

/** The end is what the API server says: it may give less than was asked for. */
export async function requestToken(
  api: KubeApi,
  { namespace, account, secret }: BoundAccount,
  expirationSeconds: number,
  signal: AbortSignal,
): Promise<{ readonly token: string; readonly endMs: number }> {
  const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${account}/token`;
  const boundObjectRef = { apiVersion: 'v1', kind: 'Secret', ...secret };
  const body = {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    spec: { audiences: [], expirationSeconds, boundObjectRef },
  };
  const { status } = await api.postPath<TokenReply>(path, body, signal);
  const endMs = Date.parse(status?.expirationTimestamp ?? '');
  if (!status?.token || Number.isNaN(endMs))
    throw new AppError(
      'kube_unreachable',
      `the API server answered the token request of ${account} without a token or its end`,
    );
  return { token: status.token, endMs };
}

/** The sealed token that an identity holds, if it has not ended and was issued for this request. */
export function heldToken(secret: Secret | undefined, csr: string | undefined, nowMs: number): Credential | undefined {
  const token = readToken(secret);
  return token !== undefined && token.csr === csr && token.endMs > nowMs
    ? { sealedToken: token.sealed, tokenExpiration: new Date(token.endMs).toISOString() }
    : undefined;
}
