/** Who is calling and what they may do. Every use case takes a caller and can only reach the caller's tenant. */
import { AppError } from '#shared/errors/app-error.ts';

export const roleNames = ['viewer', 'operator', 'admin'] as const;
export type Role = (typeof roleNames)[number];

/** What came with the request, for the audit log. */
export interface Origin {
  /** Network address of the caller, as the edge saw it. */
  readonly from: string;
  readonly requestId: string;
}

export interface Principal extends Origin {
  readonly tenant: string;
  /** `api-key/ak_…`, `cluster/rome` or `system`: what audit records name. */
  readonly principal: string;
}

/** A member of a tenant with a role, narrowed by the scopes of the key. */
export interface Caller extends Principal {
  readonly role: Role;
  /** Absent: everything the role allows. */
  readonly scopes?: readonly Permission[];
}

/** An agent whose signature was verified. */
export interface AgentCaller extends Principal {
  readonly clusterId: string;
  /** When the agent signed the request, in milliseconds: of two reports the later one counts. */
  readonly signedAt?: number;
}

/** Each permission and the least role that has it. */
const leastRole = {
  'clusters:read': 'viewer',
  'clusters:join': 'operator',
  'clusters:remove': 'operator',
  'peerings:read': 'viewer',
  'peerings:write': 'operator',
  'events:read': 'viewer',
  'audit:read': 'operator',
  'keys:read': 'admin',
  'keys:write': 'admin',
} as const satisfies Record<string, Role>;
export type Permission = keyof typeof leastRole;
export const permissionNames = Object.keys(leastRole) as [Permission, ...Permission[]];

export const roleAllows = (role: Role, permission: Permission): boolean =>
  roleNames.indexOf(role) >= roleNames.indexOf(leastRole[permission]);

/** Throws `forbidden` naming what is lacking. */
export function mustHave(caller: Caller, permission: Permission): void {
  if (!roleAllows(caller.role, permission)) {
    const needed = leastRole[permission];
    throw new AppError(
      'forbidden',
      `${permission} needs role ${needed}, this key has role ${caller.role}; use a key with role ${needed}`,
      {
        detail: { permission, role: caller.role, needed },
      },
    );
  }
  if (caller.scopes && !caller.scopes.includes(permission)) {
    throw new AppError(
      'forbidden',
      `this key is scoped to ${caller.scopes.join(', ')}; use a key whose scopes include ${permission}`,
      {
        detail: { permission, scopes: caller.scopes },
      },
    );
  }
}
