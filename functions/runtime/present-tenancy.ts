/** Tenants, members and issuers as clients see them. */
import type { IssuerView } from '#control/tenants/issuers.ts';
import type { MemberView } from '#control/tenants/members.ts';
import type { OwnTenantView } from '#control/tenants/own-tenant.ts';
import type { TenantView } from '#control/tenants/tenant.ts';
import type { Issuer, Member, OwnTenantResource, TenantResource } from '#shared/schema/api/tenancy.ts';

const time = (ms: number): string => new Date(ms).toISOString();

export const tenantResource = ({ createdAt, deletionStartedAt, ...view }: TenantView): TenantResource => ({
  ...view,
  createdAt: time(createdAt),
  ...(deletionStartedAt !== undefined && { deletionStartedAt: time(deletionStartedAt) }),
});

export const ownTenantResource = ({ usage, ...view }: OwnTenantView): OwnTenantResource => ({
  ...tenantResource(view),
  usage,
});

export const memberResource = ({ createdAt, ...view }: MemberView): Member => ({ ...view, createdAt: time(createdAt) });

export const issuerResource = ({ createdAt, claims, roles, ...view }: IssuerView): Issuer => ({
  ...view,
  claims: { ...claims },
  roles: { ...roles },
  createdAt: time(createdAt),
});

/** Without members that are undefined: what was not given stays as it is. */
export function given<T extends object>(value: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== undefined)) as never;
}
