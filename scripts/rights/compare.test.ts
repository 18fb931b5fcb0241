import { expect, test } from 'vitest';
import { unseenRights } from '#cli/install/unseen-rights.ts';
import {
  narrowable,
  type RoleRights,
  rightsList,
  rightsOf,
  rightsProblems,
  staleExcuses,
  type Used,
} from './compare.ts';
import { installedRoles, ofEachKind } from './installed-roles.ts';

const rule = (group: string, resources: string[], verbs: string[]) => ({ apiGroups: [group], resources, verbs });
const agent: RoleRights = {
  role: 'agent',
  accounts: ['a'],
  rules: [rule('', ['pods', 'pods/status'], ['get', 'patch']), rule('x.io', ['things'], ['list'])],
};
const guest: RoleRights = { role: 'guest', rules: [rule('', ['pods'], ['get'])] };
const by = (account: string, role: string, ...rights: string[]): Used[] =>
  rights.map((right) => ({ account, role, right, place: 'cluster' }));
const all = by('a', 'other', 'get pods', 'patch pods', 'get pods/status', 'patch pods/status', 'list x.io/things');

test('a right that was never used is named with its role', () => {
  expect(rightsProblems([agent], all, [])).toEqual([]);
  expect(rightsProblems([agent], all.slice(1), [])).toEqual(['agent may get pods, and nothing used that']);
  expect(rightsProblems([agent], all.slice(0, -1), [])).toEqual(['agent may list x.io/things, and nothing used that']);
});

test('the list says of each right of each role where it was used', () => {
  const used: Used[] = [...all.slice(1), { ...all[1]!, place: 'tenants' }];
  expect(rightsList([agent, guest], used)).toEqual([
    ...['agent\tget pods\tunused', 'agent\tpatch pods\tcluster tenants', 'agent\tget pods/status\tcluster'],
    ...['agent\tpatch pods/status\tcluster', 'agent\tlist x.io/things\tcluster', 'guest\tget pods\tunused'],
  ]);
});

test('a guest used what its own role granted, and not what another one did', () => {
  expect(rightsProblems([guest], by('rome', 'guest', 'get pods'), [])).toEqual([]);
  expect(rightsProblems([guest], by('rome', 'admin', 'get pods'), [])).toHaveLength(1);
});

test('a right with a reason may be unused, and must be where its reason says so', () => {
  const excuse = { role: 'agent', rights: ['get pods'], reason: 'failures only' };
  expect(rightsProblems([agent], all.slice(1), [excuse])).toEqual([]);
  expect(rightsProblems([agent], all, [excuse])).toEqual([
    'agent used its right to get pods, which is listed as not used (failures only)',
  ]);
  expect(rightsProblems([agent], all, [{ ...excuse, mayBeUsed: true }])).toEqual([]);
});

test('a reason for a right that the role does not have is stale', () => {
  const excuse = { role: 'agent', rights: ['delete pods'], reason: 'gone' };
  expect(rightsProblems([agent], all, [excuse])).toEqual([
    'agent is listed as not using its right to delete pods, and it has no such right',
  ]);
});

test('what the API server asks on the way to another right counts as used with that one', () => {
  const binder = { ...agent, rules: [rule('rbac.authorization.k8s.io', ['clusterroles'], ['bind'])] };
  expect(rightsProblems([binder], by('a', '', 'create rbac.authorization.k8s.io/rolebindings'), [])).toEqual([]);
  expect(rightsProblems([binder], [], [])).toHaveLength(1);
});

test('each reason beside the roles is of a right that they have', () => {
  const roles = installedRoles();
  expect(roles.map(({ role }) => role)).toEqual(
    expect.arrayContaining(['isthmus-agent', 'isthmus-agent-tenant', 'isthmus-fabric', 'liqo-virtual-kubelet-remote']),
  );
  expect(staleExcuses(roles, unseenRights)).toEqual([]);
  expect(unseenRights.filter(({ reason }) => reason.length < 20)).toEqual([]);
});

test('a role that two namespaces have with other rights is compared with those of both', () => {
  const leases = installedRoles().find(({ role }) => role === 'isthmus-agent-leases');
  expect(rightsOf(leases?.rules)).toEqual(
    expect.arrayContaining(['update coordination.k8s.io/leases', 'delete coordination.k8s.io/leases']),
  );
});

test('a right of the whole cluster that was used in tenant and system namespaces only is named with where', () => {
  const wide = { ...agent, isClusterWide: true };
  const at = (right: string, ...places: Used['place'][]): Used[] =>
    places.map((place) => ({ account: 'a', role: '', right, place }));
  const uses = [
    ...at('get pods', 'tenants', 'system'),
    ...at('patch pods', 'tenants', 'other'),
    ...at('get pods/status', 'cluster'),
  ];
  expect(narrowable([wide], uses)).toEqual(['agent may get pods in the whole cluster: used in system and tenants']);
  expect(narrowable([agent], uses)).toEqual([]);
});

test.each([
  ['a group that is not ours', { apiGroups: ['batch'], resources: ['*'], verbs: ['list'] }],
  ['all groups', { apiGroups: ['*'], resources: ['*'], verbs: ['list'] }],
  ['two groups', { apiGroups: ['isthmus.dev', 'batch'], resources: ['*'], verbs: ['list'] }],
  ['a group, beside subresources,', { apiGroups: ['isthmus.dev'], resources: ['*', '*/status'], verbs: ['patch'] }],
])('all resources of %s are refused, as no request could be held against each', (_, wide) => {
  expect(() => ofEachKind(wide)).toThrow('* is accepted alone');
});

test('all kinds of a group are compared one by one', () => {
  const rules = installedRoles().find(({ role }) => role === 'isthmus-agent')?.rules;
  const rights = rightsOf(rules);
  expect(rights).toContain('watch isthmus.dev/peeringlocks');
  expect(rights).not.toContain('get isthmus.dev/peeringlocks');
  expect(rights.filter((right) => right.includes('*'))).toEqual([]);
});
