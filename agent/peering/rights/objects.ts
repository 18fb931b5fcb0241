/** In which namespaces the agent has more rights than everywhere, and the RoleBinding that gives them. Pure. */
import type { Applied } from '#kube/model/types.ts';
import { type AgentRole, agentAccount, agentRole } from '#shared/domain/agent-roles.ts';
import type { Namespace, RoleBinding } from '#shared/domain/kube-object.ts';
import { annotation, label } from '#shared/domain/liqo-keys.ts';

const rbac = 'rbac.authorization.k8s.io';

/** None in a namespace that is going: nothing can be made there any more. */
export function rolesIn({ metadata }: Namespace, isOffloaded: boolean): readonly AgentRole[] {
  const { labels = {}, annotations = {}, deletionTimestamp } = metadata;
  if (deletionTimestamp !== undefined) return [];
  const isTenant = labels[label.tenantNamespace] !== undefined && labels[label.remoteClusterId] !== undefined;
  const isGuest = annotations[annotation.managedByNamespaceMap] !== undefined;
  return [
    ...(isTenant ? [agentRole.tenant] : []),
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
