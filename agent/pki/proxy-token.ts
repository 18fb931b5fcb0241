/**
 * The token by which a consumer passes the proxy in front of a provider's API server: a compact JWS (RFC 7515) over the claims below, EdDSA by the
 * consumer cluster's own key. Valid for one connection, within a minute, at one provider, for one run of its proxy. Pure. `jose` writes, parses and verifies.
 */
import type { KeyObject } from 'node:crypto';
import { compactVerify, decodeJwt, decodeProtectedHeader, SignJWT } from 'jose';

export interface ProxyClaims {
  /** Cluster ID of the consumer. */
  readonly iss: string;
  /** Cluster ID of the provider. */
  readonly aud: string;
  /** Seconds since the epoch. */
  readonly iat: number;
  readonly exp: number;
  readonly jti: string;
  /** As in the proxy's challenge: a token for another run of the proxy is worthless. */
  readonly nonce: string;
}

export const proxyTokenLifeSeconds = 60;
/** How far the clocks of two clusters may be apart. */
export const proxyClockSkewSeconds = 30;
/** No token of ours comes near it. */
const proxyTokenMaxLength = 2048;

export function signProxyToken(claims: Omit<ProxyClaims, 'exp'>, privateKey: KeyObject): Promise<string> {
  const { iss, aud, iat, jti, nonce } = claims;
  return new SignJWT({ iss, aud, iat, exp: iat + proxyTokenLifeSeconds, jti, nonce })
    .setProtectedHeader({ alg: 'EdDSA', typ: 'JWT' })
    .sign(privateKey);
}

export interface ReadToken {
  /** Worth nothing before `isSignedBy` says so. */
  readonly claims: ProxyClaims;
  isSignedBy(publicKey: KeyObject): Promise<boolean>;
}

/** Undefined: not a token of this kind. The algorithm is fixed: a header that names another one is refused. */
export function readProxyToken(text: string): ReadToken | undefined {
  if (text.length > proxyTokenMaxLength) return undefined;
  // `jose` takes white space and other letters inside a part, which would make two texts of one token.
  if (!/^[\w-]+\.[\w-]+\.[\w-]+$/.test(text)) return undefined;
  const [stated, claims] = [orNone(() => decodeProtectedHeader(text)), orNone(() => decodeJwt(text))];
  if (stated?.alg !== 'EdDSA' || 'crit' in stated || !isClaims(claims)) return undefined;
  return {
    claims,
    isSignedBy: (key) =>
      key.asymmetricKeyType !== 'ed25519'
        ? Promise.resolve(false)
        : compactVerify(text, key, { algorithms: ['EdDSA'] }).then(
            () => true,
            () => false,
          ),
  };
}

function orNone<T>(parse: () => T): T | undefined {
  try {
    return parse();
  } catch {
    return undefined;
  }
}

function isClaims(found: object | undefined): found is ProxyClaims {
  const { iss, aud, iat, exp, jti, nonce } = (found ?? {}) as Record<string, unknown>;
  return (
    [iss, aud, jti, nonce].every((text) => typeof text === 'string' && text !== '' && text.length <= 253) &&
    [iat, exp].every((seconds) => Number.isSafeInteger(seconds))
  );
}

export interface TokenSource {
  /** Cluster ID of this cluster. */
  readonly consumer: string;
  /** Ed25519. */
  readonly privateKey: KeyObject;
  readonly nowMs: () => number;
  readonly newId: () => string;
}

/** A new token for each call: `provider` is the cluster that must read it, `nonce` its proxy's. */
export const proxyTokens =
  ({ consumer, privateKey, nowMs, newId }: TokenSource) =>
  (provider: string, nonce: string): Promise<string> =>
    signProxyToken({ iss: consumer, aud: provider, iat: Math.floor(nowMs() / 1000), jti: newId(), nonce }, privateKey);
