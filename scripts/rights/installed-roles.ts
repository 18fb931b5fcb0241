/** The roles that an installation gives to the agent, the process of a node, gateways and guests, and the accounts whose requests use them. */
import { objectsOfAgent } from '#cli/install/manifests.ts';
import { agentAccount } from '#shared/domain/agent-roles.ts';
import type { ClusterRole, ClusterRoleBinding } from '#shared/domain/core-kinds.ts';
import { systemNamespace } from '#shared/domain/liqo-keys.ts';
import { fabricName } from '#shared/domain/network-keys.ts';
import { remoteRoles } from '#shared/domain/remote-roles.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { allKinds } from '#shared/schema/all-kinds.ts';
import type { RoleRights } from './compare.ts';

type Rule = NonNullable<ClusterRole['rules']>[number];

const account = (name: string): string => `system:serviceaccount:${systemNamespace}:${name}`;
const guests = new Set(remoteRoles().map(({ metadata }) => metadata.name));

/** Those that anything in the roles depends on. */
const whole = objectsOfAgent({
  clusterId: 'rome',
  image: 'isthmus.dev/agent:1',
  apiServerUrl: 'https://192.0.2.1:6443',
  replicas: 1,
  network: {
    ranges: {
      podCidrs: ['10.200.0.0/16'],
      serviceCidr: '10.96.0.0/12',
      externalCidr: '10.70.0.0/16',
      internalCidr: '10.80.0.0/16',
      reservedSubnets: [],
      fixed: { external: false, internal: false },
    },
  },
  storage: { className: 'liqo', capacityClassName: 'isthmus', isDefault: false },
  metrics: 'authenticated',
});

function accountsOf(role: string): readonly string[] | undefined {
  if (role.startsWith(agentAccount)) return [account(agentAccount)];
  // In a cluster of one node the agent does the work of its process as well, by the same role.
  if (role.startsWith(fabricName)) return [account(fabricName), account(agentAccount)];
  return undefined;
}

/** All resources of a group of ours, one by one: a kind that nothing reads is a right that nothing uses. Throws for a `*` that it cannot spell out. */
export function ofEachKind(rule: Rule): Rule {
  const { apiGroups = [], resources = [] } = rule;
  if (!resources.includes('*')) return rule;
  const kinds = allKinds.filter(({ group }) => apiGroups.includes(group));
  // Of another group, of several, or beside subresources, rights would be left out here, and never be looked for.
  if (apiGroups.length !== 1 || resources.length !== 1 || kinds.length === 0)
    throw new AppError('invalid_input', `* is accepted alone and in one group of ours: ${JSON.stringify(rule)}`);
  return { ...rule, resources: kinds.map(({ plural }) => plural) };
}

const boundEverywhere = new Set(
  whole.flatMap((object) =>
    object.kind === 'ClusterRoleBinding' ? [(object as unknown as ClusterRoleBinding).roleRef.name] : [],
  ),
);

/** Roles of one name in several namespaces are one here. Not those of people: peering users, scrapers of metrics. */
export function installedRoles(): readonly RoleRights[] {
  const roles = new Map<string, RoleRights>();
  for (const object of whole) {
    if (object.kind !== 'ClusterRole' && object.kind !== 'Role') continue;
    const { name } = object.metadata;
    const accounts = accountsOf(name);
    if (accounts === undefined && !guests.has(name)) continue;
    const rules = [...(roles.get(name)?.rules ?? []), ...((object as ClusterRole).rules ?? []).map(ofEachKind)];
    const isClusterWide = boundEverywhere.has(name);
    roles.set(name, { role: name, isClusterWide, rules, ...(accounts && { accounts }) });
  }
  return [...roles.values()];
}
