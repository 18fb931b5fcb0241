/** Which role may do what, as control/access/caller.ts enforces it: a page hides what the broker would refuse. `rights.test.ts` compares both. */

const roles = ['viewer', 'operator', 'admin'] as const;
export type Role = (typeof roles)[number];

export const leastRole = {
  'clusters:join': 'operator',
  'clusters:label': 'operator',
  'clusters:remove': 'operator',
  'peerings:write': 'operator',
  'invitations:read': 'operator',
  'invitations:write': 'operator',
  'requests:write': 'operator',
  'approval-rules:write': 'admin',
  'directory:write': 'operator',
  'audit:read': 'operator',
  'webhooks:read': 'operator',
  'webhooks:write': 'admin',
  'keys:read': 'admin',
  'keys:write': 'admin',
  'members:read': 'operator',
  'members:write': 'admin',
  'issuers:read': 'operator',
  'issuers:write': 'admin',
} as const satisfies Record<string, Role>;
export type Right = keyof typeof leastRole;

export interface Member {
  readonly kind: 'member';
  readonly tenant: string;
  readonly principal: string;
  readonly role: Role;
  readonly scopes?: readonly string[];
}

export const allows = ({ role, scopes }: Pick<Member, 'role' | 'scopes'>, right: Right): boolean =>
  roles.indexOf(role) >= roles.indexOf(leastRole[right]) && (scopes === undefined || scopes.includes(right));
