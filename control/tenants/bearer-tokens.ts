/** Tokens of identity providers: verified against the issuers that the tenant registered, and turned into a caller with a role. */
import { decodeJwt, type JWTPayload, jwtVerify } from 'jose';
import { AppError } from '#shared/errors/app-error.ts';
import type { Clock } from '#shared/ports/clock.ts';
import type { Log } from '#shared/ports/log.ts';
import { type Caller, type Origin, type Role, roleNames } from '../access/caller.ts';
import { sha256Hex } from '../access/secrets.ts';
import type { KnownTenants } from '../model/tenant.ts';
import type { IssuerRecord, Issuers } from './issuers.ts';
import type { Members } from './members.ts';
import type { SigningKeys } from './signing-keys.ts';

export interface BearerTokens {
  /**
   * The member, or the subject that the issuer's role claim makes one. `unauthenticated`, in the same words, for a tenant that does not exist, an
   * issuer that it did not register, an invalid token, and a subject that is no member: a refused caller learns nothing.
   */
  authenticate(tenant: string, token: string, origin: Origin, signal?: AbortSignal): Promise<Caller>;
}

const maxTokenLength = 16_384;
const clockTolerance = 30;
/** Asymmetric ones only: a symmetric key would be a secret of ours. */
const algorithms = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
];

interface BearerDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly issuers: Issuers;
  readonly members: Members;
  readonly keys: SigningKeys;
  readonly known: KnownTenants;
}

const refused = (cause?: unknown): AppError =>
  new AppError(
    'unauthenticated',
    'this bearer token is not accepted: the tenant that the header isthmus-tenant names must have registered its issuer and audience, it must not be expired, and its subject must be a member',
    { cause },
  );

export function createBearerTokens({ clock, log, issuers, members, keys, known }: BearerDeps): BearerTokens {
  async function verified(token: string, candidates: readonly IssuerRecord[]) {
    const { iss, aud } = decodeJwt(token);
    const audiences = Array.isArray(aud) ? aud : [aud];
    const issuer = candidates.find(({ url, audience }) => url === iss && audiences.includes(audience));
    if (!issuer) throw refused();
    const { payload } = await jwtVerify(token, keys.of(issuer.url), {
      issuer: issuer.url,
      audience: issuer.audience,
      algorithms,
      clockTolerance,
      currentDate: new Date(clock.now()),
      requiredClaims: ['exp'],
    });
    return { issuer, payload };
  }

  return {
    async authenticate(tenant, token, origin, signal) {
      if (!/^[-a-z0-9]{1,63}$/.test(tenant) || token.length > maxTokenLength) throw refused();
      const candidates = await issuers.of(tenant, signal);
      const { issuer, payload } = await verified(token, candidates).catch((error: unknown) => {
        log.debug('a bearer token was refused', { tenant, reason: (error as Error).message });
        throw refused(error);
      });
      const subject = claimAt(payload, issuer.claims.subject ?? 'sub');
      if (typeof subject !== 'string' || subject === '') throw refused();
      const email = claimAt(payload, issuer.claims.email ?? 'email');
      const member = await members.find(
        tenant,
        {
          issuer: issuer.url,
          subject,
          ...(typeof email === 'string' && payload.email_verified === true ? { verifiedEmail: email } : {}),
        },
        signal,
      );
      const role = member?.role ?? mappedRole(payload, issuer);
      if (role === undefined) throw refused();
      await known.mustServe(tenant, signal);
      return {
        ...origin,
        tenant,
        principal: member ? `member/${member.id}` : `oidc/${issuer.id}/${nameOf(subject)}`,
        role,
      };
    },
  };
}

/** For audit records and Idempotency-Keys: no two subjects share one. */
function nameOf(subject: string): string {
  const name = encodeURIComponent(subject.toWellFormed());
  return name.length <= 200 ? name : sha256Hex(subject);
}

/** By its full name first: claims may be named by URLs, which hold dots. */
function claimAt(payload: JWTPayload, name: string): unknown {
  if (Object.hasOwn(payload, name)) return payload[name];
  return name
    .split('.')
    .reduce<unknown>(
      (value, part) =>
        typeof value === 'object' && value !== null && Object.hasOwn(value, part)
          ? (value as Record<string, unknown>)[part]
          : undefined,
      payload,
    );
}

function mappedRole(payload: JWTPayload, { claims, roles }: IssuerRecord): Role | undefined {
  if (claims.role === undefined) return undefined;
  const value = claimAt(payload, claims.role);
  const words = (Array.isArray(value) ? value : [value]).filter((word): word is string => typeof word === 'string');
  const granted = words.flatMap((word) => (Object.hasOwn(roles, word) ? [roles[word] as Role] : []));
  return [...roleNames].reverse().find((role) => granted.includes(role));
}
