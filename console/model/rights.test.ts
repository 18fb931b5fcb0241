import { expect, test } from 'vitest';
import { type Permission, permissionNames, requiredRole } from '#control/access/caller.ts';
import { allows, leastRole, type Right } from './rights.ts';

test('the console offers to each role what the broker lets it do', () => {
  for (const [right, role] of Object.entries(leastRole)) {
    expect(permissionNames).toContain(right);
    expect(requiredRole(right as Permission), right).toBe(role);
  }
});

test.each([
  { role: 'viewer', right: 'peerings:write', is: false },
  { role: 'operator', right: 'peerings:write', is: true },
  { role: 'operator', right: 'keys:write', is: false },
  { role: 'admin', right: 'keys:write', is: true },
  { role: 'admin', right: 'keys:write', scopes: ['clusters:read'], is: false },
  { role: 'operator', right: 'peerings:write', scopes: ['peerings:write'], is: true },
] as const)('a key of role $role with scopes $scopes may $right: $is', ({ is, right, ...key }) => {
  expect(allows(key, right satisfies Right)).toBe(is);
});
