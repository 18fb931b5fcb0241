/** The authenticated caller and its rights. Every use case takes a caller and can only reach the caller's tenant. */
import { AppError } from '#shared/errors/app-error.ts';
import type { Op } from '../ports/store.ts';

export const roleNames = ['viewer', 'operator', 'admin'] as const;
export type Role = (typeof roleNames)[number];

/** What came with the request, for the audit log. */
export interface Origin {
  /** Network address of the caller, as the edge saw it. */
  readonly from: string;
  readonly requestId: string;
  /** Came with an Idempotency-Key: use cases heed it by `control/store/repeat.ts`. */
  readonly repeat?: Repeat;
}

/** One request that may come again. */
export interface Repeat {
  /** What the use case remembered when it came before. */
  readonly earlier?: unknown;
  /** The operation that remembers what the use case makes, for the transaction that makes it. `result` is JSON. */
  remember(result: unknown): Op;
}

export interface Principal extends Origin {
  readonly tenant: string;
  /** `api-key/ak_…`, `member/mb_…`, `oidc/is_…/SUBJECT`, `cluster/rome`, `operator/ok_…` or `system`: what audit records name. */
  readonly principal: string;
}

/** A member of a tenant with a role, narrowed by the scopes of the key. */
export interface Caller extends Principal {
  readonly role: Role;
  /** Absent: everything the role allows. */
  readonly scopes?: readonly Permission[];
}

/** The operator of the deployment: makes, suspends and limits tenants, and is a member of none. */
export interface OperatorCaller extends Origin {
  /** `operator/ok_…` */
  readonly principal: string;
}

/** An agent whose signature was verified. */
export interface AgentCaller extends Principal {
  readonly clusterId: string;
  /** When the agent signed the request, in milliseconds: of two reports the later one counts. */
  readonly signedAt?: number;
  /** Protocol version that it speaks. Absent: 1. */
  readonly protocol?: number;
}

/** Each permission and the least role that has it. */
const leastRole = {
  'clusters:read': 'viewer',
  'clusters:join': 'operator',
  'clusters:replace-key': 'admin',
  'clusters:label': 'operator',
  'clusters:remove': 'operator',
  'peerings:read': 'viewer',
  'peerings:write': 'operator',
  'invitations:read': 'operator',
  'invitations:write': 'operator',
  'requests:read': 'viewer',
  'requests:write': 'operator',
  'approval-rules:read': 'viewer',
  'approval-rules:write': 'admin',
  'directory:read': 'viewer',
  'directory:write': 'operator',
  'events:read': 'viewer',
  'audit:read': 'operator',
  'webhooks:read': 'operator',
  'webhooks:write': 'admin',
  'keys:read': 'admin',
  'keys:write': 'admin',
  'tenant:read': 'viewer',
  'tenant:write': 'admin',
  'tenant:export': 'admin',
  'tenant:delete': 'admin',
  'members:read': 'operator',
  'members:write': 'admin',
  'issuers:read': 'operator',
  'issuers:write': 'admin',
} as const satisfies Record<string, Role>;
export type Permission = keyof typeof leastRole;
export const permissionNames = Object.keys(leastRole) as [Permission, ...Permission[]];

/** The least role that has the permission: what the API document says and what is enforced come from here. */
export const requiredRole = (permission: Permission): Role => leastRole[permission];

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
