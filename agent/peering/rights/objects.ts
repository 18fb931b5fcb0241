/** In which namespaces the agent has more rights than everywhere, and the RoleBinding that gives them. Pure. */
import type { Applied } from '#kube/model/types.ts';
import { type AgentRole, agentAccount, agentRole } from '#shared/domain/agent-roles.ts';
import type { Namespace, RoleBinding } from '#shared/domain/kube-object.ts';
import { annotation, label } from '#shared/domain/liqo-keys.ts';

const rbac = 'rbac.authorization.k8s.io';

const isTenants = ({ metadata: { labels = {} } }: Namespace): boolean =>
  labels[label.tenantNamespace] !== undefined && labels[label.remoteClusterId] !== undefined;

const podSecurity = 'pod-security.kubernetes.io/enforce';

/** A merge patch for the labels of a tenant namespace that says nothing of pod security: gateways need NET_ADMIN and a device of the node. */
export const podSecurityLabels = (namespace: Namespace): Record<string, string> | undefined =>
  isTenants(namespace) && namespace.metadata.labels?.[podSecurity] === undefined
    ? { [podSecurity]: 'privileged' }
    : undefined;

/** Where a distribution asks each pod for a right: gateways run by the ServiceAccounts of their namespace. Undefined: not here. */
export const gatewayBinding = (namespace: Namespace, role: string | undefined): Applied<RoleBinding> | undefined =>
  role === undefined || !isTenants(namespace)
    ? undefined
    : {
        apiVersion: `${rbac}/v1`,
        kind: 'RoleBinding',
        metadata: { name: role, namespace: namespace.metadata.name, labels: { [label.managed]: 'true' } },
        roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: role },
        subjects: [{ apiGroup: rbac, kind: 'Group', name: `system:serviceaccounts:${namespace.metadata.name}` }],
      };

/** None in a namespace that is going: nothing can be made there any more. */
export function rolesIn(namespace: Namespace, isOffloaded: boolean): readonly AgentRole[] {
  const { annotations = {}, deletionTimestamp } = namespace.metadata;
  if (deletionTimestamp !== undefined) return [];
  const isGuest = annotations[annotation.managedByNamespaceMap] !== undefined;
  return [
    ...(isTenants(namespace) ? [agentRole.tenant] : []),
    ...(isGuest ? [agentRole.guest] : []),
    ...(isOffloaded ? [agentRole.offloaded] : []),
  ];
}

/** `isthmus uninstall` finds it by its label. */
export const agentBinding = (role: AgentRole, namespace: string, systemNamespace: string): Applied<RoleBinding> => ({
  apiVersion: `${rbac}/v1`,
  kind: 'RoleBinding',
  metadata: { name: role, namespace, labels: { [label.managed]: 'true' } },
  roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: role },
  subjects: [{ kind: 'ServiceAccount', name: agentAccount, namespace: systemNamespace }],
});
