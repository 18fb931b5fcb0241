/** Everything about tenants, put together: keys, members, issuers, operators, limits, export, deletion. */
import { AppError } from '#shared/errors/app-error.ts';
import type { Caller, Origin, Principal } from '../access/caller.ts';
import { type Capacity, createCapacity } from '../limits/capacity.ts';
import type { Standing } from '../limits/limits.ts';
import { createRateLimiter, type RateKind } from '../limits/rate-limiter.ts';
import type { ControlDeps } from '../model/deps.ts';
import { createBearerTokens } from './bearer-tokens.ts';
import { createDeletion, type Deletion } from './deletion.ts';
import { createTenantExport, type TenantExport } from './export.ts';
import { createIssuers, type Issuers } from './issuers.ts';
import { createKeyUse } from './key-use.ts';
import { createKnownTenants } from './known-tenants.ts';
import { createMembers, type Members } from './members.ts';
import { createOperators, type Operators } from './operators.ts';
import { createOwnTenant, type OwnTenant } from './own-tenant.ts';
import { createSigningKeys } from './signing-keys.ts';
import { createTenants, type Tenants } from './tenants.ts';

export interface Accounts extends Tenants {
  readonly members: Members;
  readonly issuers: Issuers;
  readonly operators: Operators;
  readonly own: OwnTenant;
  readonly deletion: Deletion;
  readonly export: TenantExport;
  readonly capacity: Capacity;
  /** A bearer token of an identity provider, for the tenant that the request names. */
  authenticateToken(tenant: string | undefined, token: string, origin: Origin, signal?: AbortSignal): Promise<Caller>;
  /** Counts a request against the tenant's limit. Throws `rate_limited`. */
  admit(tenant: string, kind: RateKind, signal?: AbortSignal): Promise<Standing>;
  /** Throws `tenant_suspended`. */
  mustServe(tenant: string, signal?: AbortSignal): Promise<void>;
  /** Throws `tenant_suspended` or `tenant_deleting`. */
  mustBeActive(tenant: string, signal?: AbortSignal): Promise<void>;
}

type Unpeer = (actor: Principal, id: string, signal?: AbortSignal) => Promise<void>;

export function createAccounts(deps: ControlDeps, unpeer: Unpeer): Accounts {
  const known = createKnownTenants(deps);
  const capacity = createCapacity(deps, known);
  const rates = createRateLimiter(deps);
  const keys = createSigningKeys({ documents: deps.documents, clock: deps.clock, log: deps.log });
  const members = createMembers(deps);
  const issuers = createIssuers(deps, keys);
  const tokens = createBearerTokens({ ...deps, issuers, members, keys, known });
  return {
    ...createTenants(deps, known, createKeyUse(deps)),
    members,
    issuers,
    operators: createOperators(deps, known),
    own: createOwnTenant(deps, capacity, known),
    deletion: createDeletion({ ...deps, unpeer }, known),
    export: createTenantExport(deps),
    capacity,
    mustServe: (tenant, signal) => known.mustServe(tenant, signal),
    mustBeActive: (tenant, signal) => known.mustBeActive(tenant, signal),
    async authenticateToken(tenant, token, origin, signal) {
      if (tenant === undefined) {
        throw new AppError(
          'unauthenticated',
          'a bearer token of an identity provider needs the header isthmus-tenant: NAME beside it',
        );
      }
      return tokens.authenticate(tenant, token, origin, signal);
    },
    async admit(tenant, kind, signal) {
      const limits = await known.limits(tenant, signal);
      return rates.admit(tenant, kind, kind === 'requests' ? limits.requestsPerMinute : limits.eventsPerMinute, signal);
    },
  };
}
