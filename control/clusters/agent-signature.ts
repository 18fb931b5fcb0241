/** Verifies what an agent signs: an EdDSA JWT over method, path and body, for this broker, at most a minute old. */
import { createHash } from 'node:crypto';
import { decodeJwt, errors, importJWK, jwtVerify } from 'jose';
import { AppError } from '#shared/errors/app-error.ts';
import { AgentClaims } from '#shared/schema/protocol/agent-identity.ts';
import type { PublicJwk, SignedRequest } from '../model/cluster.ts';

export const maxAgeSeconds = 60;
/** How far the clocks of agent and broker may be apart. */
export const clockSkewSeconds = 10;

const invalid = (message: string, cause?: unknown): AppError => new AppError('signature_invalid', message, { cause });

export function bearerOf(authorization: string | undefined): string {
  const match = /^Bearer ([-\w]+\.[-\w]+\.[-\w]+)$/i.exec(authorization ?? '');
  if (!match?.[1]) throw new AppError('unauthenticated', 'agent requests carry `authorization: Bearer <signed JWT>`');
  return match[1];
}

/** Whom the token says it is from; nothing is verified yet. */
export function claimedCluster(token: string): { readonly tenant: string; readonly clusterId: string } {
  let subject: unknown;
  try {
    subject = decodeJwt(token).sub;
  } catch (cause) {
    throw invalid('the bearer token is not a JWT', cause);
  }
  const match = /^([-a-z0-9]{1,63})\/([-a-z0-9]{1,63})$/.exec(typeof subject === 'string' ? subject : '');
  if (!match?.[1] || !match[2]) throw invalid('the subject of the signed request must be <tenant>/<cluster ID>');
  return { tenant: match[1], clusterId: match[2] };
}

export interface Verification {
  readonly request: SignedRequest;
  readonly token: string;
  readonly publicKey: PublicJwk;
  readonly audience: string;
  readonly now: number;
}

/** Everything but the single use of `jti`, which needs the store. */
export async function verifySignature({
  request,
  token,
  publicKey,
  audience,
  now,
}: Verification): Promise<AgentClaims> {
  const payload = await verifiedPayload(token, publicKey, audience, now);
  const parsed = AgentClaims.safeParse(payload);
  if (!parsed.success) {
    const fields = parsed.error.issues.map((issue) => issue.path.join('.')).join(', ');
    throw invalid(`the signed request lacks or misstates the claims ${fields}`);
  }
  const claims = parsed.data;
  const { clusterId } = claimedCluster(token);
  if (claims.iss !== clusterId)
    throw invalid(`the issuer of the signed request is ${claims.iss}, expected ${clusterId}`);
  if (claims.exp - claims.iat > maxAgeSeconds) throw invalid(`a signed request lives at most ${maxAgeSeconds} seconds`);
  if (claims.iat * 1_000 > now + clockSkewSeconds * 1_000) {
    throw new AppError('request_expired', 'the request was signed in the future; check the clocks of both machines');
  }
  if (claims.htm !== request.method || claims.htp !== request.path) {
    throw invalid(`the signature is for ${claims.htm} ${claims.htp}, the request is ${request.method} ${request.path}`);
  }
  const hash = createHash('sha256').update(request.body).digest('base64url');
  if (claims.bsh !== hash) throw invalid('the body is not the one that was signed');
  return claims;
}

async function verifiedPayload(token: string, publicKey: PublicJwk, audience: string, now: number): Promise<unknown> {
  try {
    const { payload } = await jwtVerify(token, await importJWK({ ...publicKey }, 'EdDSA'), {
      algorithms: ['EdDSA', 'Ed25519'],
      audience,
      clockTolerance: clockSkewSeconds,
      currentDate: new Date(now),
    });
    return payload;
  } catch (error) {
    if (error instanceof errors.JWTExpired) {
      throw new AppError('request_expired', `the request was signed more than ${maxAgeSeconds} seconds ago`, {
        cause: error,
      });
    }
    if (error instanceof errors.JWTClaimValidationFailed && error.claim === 'aud') {
      throw invalid(`the request was signed for another broker than ${audience}`, error);
    }
    throw invalid('the request is not signed by the key that the cluster enrolled', error);
  }
}
