/**
 * The tenant of credentials that were found good before, so that requests can be put in turns before anything is spent on them. Only hashes are kept;
 * what is refused is forgotten.
 */
import { createHash } from 'node:crypto';
import type { Composition } from '#functions/runtime/composition.ts';

export interface KnownCallers {
  /** Undefined: these credentials were not seen lately, or are none. */
  tenantOf(authorization: string | undefined): string | undefined;
  readonly onMember: NonNullable<Composition['onMember']>;
}

/** Those that were used longest ago are forgotten first. */
const mostKnown = 10_000;

const hashOf = (text: string): string => createHash('sha256').update(text).digest('base64');

export function createKnownCallers(most = mostKnown): KnownCallers {
  const tenants = new Map<string, string>();
  return {
    tenantOf: (authorization) => (authorization === undefined ? undefined : tenants.get(hashOf(authorization))),
    onMember(authorization, tenant) {
      const hash = hashOf(authorization);
      // Re-inserted, so that the map's order is that of use.
      tenants.delete(hash);
      if (tenant === undefined) return;
      tenants.set(hash, tenant);
      const [oldest] = tenants.keys();
      if (tenants.size > most && oldest !== undefined) tenants.delete(oldest);
    },
  };
}
