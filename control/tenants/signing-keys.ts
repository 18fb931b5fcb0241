/**
 * The public keys of identity providers, found by OpenID Connect discovery and kept: ten minutes when all is well, a day when the provider
 * cannot be reached. An unknown key id makes it look again, at most every half minute, so that forged tokens cause no traffic.
 */
import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTVerifyGetKey } from 'jose';
import * as z from 'zod';
import { AppError } from '#shared/errors/app-error.ts';
import type { Clock } from '#shared/ports/clock.ts';
import type { Log } from '#shared/ports/log.ts';
import type { DocumentSource } from '../ports/document-source.ts';

export interface SigningKeys {
  /** For `jwtVerify`. */
  of(issuer: string): JWTVerifyGetKey;
  /** Fetches now; throws `issuer_unreachable`. */
  check(issuer: string, signal?: AbortSignal): Promise<void>;
}

interface Kept {
  readonly keys: JWTVerifyGetKey;
  readonly at: number;
}

const freshMs = 10 * 60_000;
const staleMs = 24 * 3_600_000;
const lookAgainMs = 30_000;
const maxIssuers = 1_000;
const maxKeys = 50;

const Discovery = z.object({ issuer: z.string(), jwks_uri: z.string() });
const KeySet = z.object({ keys: z.array(z.record(z.string(), z.unknown())).min(1).max(maxKeys) });

interface SigningKeysDeps {
  readonly documents?: DocumentSource | undefined;
  readonly clock: Clock;
  readonly log: Log;
}

export function createSigningKeys({ documents, clock, log }: SigningKeysDeps): SigningKeys {
  const kept = new Map<string, Kept>();
  const fetching = new Map<string, Promise<Kept>>();
  const triedAt = new Map<string, number>();

  async function fetchKeys(issuer: string, signal?: AbortSignal): Promise<Kept> {
    const unreachable = (why: string): AppError =>
      new AppError('issuer_unreachable', `the keys of issuer ${issuer} cannot be had: ${why}`, {
        detail: { issuer },
      });
    if (!documents) throw unreachable('this broker fetches none');
    const found = await documents.json(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`, signal);
    const discovery = Discovery.safeParse(found);
    if (!discovery.success) throw unreachable('its discovery document lacks issuer or jwks_uri');
    if (discovery.data.issuer !== issuer) {
      throw unreachable(`its discovery document is that of ${JSON.stringify(discovery.data.issuer.slice(0, 200))}`);
    }
    const { jwks_uri: where } = discovery.data;
    const refusal = documents.refusal(where);
    if (refusal !== undefined) throw unreachable(`its jwks_uri may not be fetched: ${refusal}`);
    const set = KeySet.safeParse(await documents.json(where, signal));
    if (!set.success) throw unreachable(`its key set is not a list of 1 to ${maxKeys} keys`);
    return { keys: createLocalJWKSet(set.data as unknown as JSONWebKeySet), at: clock.now() };
  }

  /** Many requests, one fetch. */
  async function refresh(issuer: string): Promise<Kept> {
    const running = fetching.get(issuer);
    if (running) return running;
    if (triedAt.size >= maxIssuers) triedAt.clear();
    triedAt.set(issuer, clock.now());
    const next = fetchKeys(issuer)
      .then((fresh) => {
        if (kept.size >= maxIssuers) kept.delete(kept.keys().next().value ?? '');
        kept.set(issuer, fresh);
        return fresh;
      })
      .finally(() => fetching.delete(issuer));
    fetching.set(issuer, next);
    return next;
  }

  const mayTry = (issuer: string): boolean =>
    clock.now() - (triedAt.get(issuer) ?? Number.NEGATIVE_INFINITY) >= lookAgainMs;

  async function current(issuer: string): Promise<Kept> {
    const known = kept.get(issuer);
    const age = known ? clock.now() - known.at : Number.POSITIVE_INFINITY;
    if (known && (age < freshMs || !mayTry(issuer))) return known;
    if (!known && !mayTry(issuer) && !fetching.has(issuer)) {
      throw new AppError('issuer_unreachable', `the keys of issuer ${issuer} could not be had a moment ago`);
    }
    try {
      return await refresh(issuer);
    } catch (error) {
      if (!known || age >= staleMs) throw error;
      log.warn('the keys of an issuer could not be renewed', { issuer, reason: (error as Error).message });
      return known;
    }
  }

  return {
    of: (issuer) => async (header, token) => {
      const { keys } = await current(issuer);
      try {
        return await keys(header, token);
      } catch (error) {
        if (!(error instanceof errors.JWKSNoMatchingKey) || !mayTry(issuer)) throw error;
        return (await refresh(issuer)).keys(header, token);
      }
    },
    check: async (issuer, signal) => {
      const fresh = await fetchKeys(issuer, signal);
      kept.set(issuer, fresh);
    },
  };
}
