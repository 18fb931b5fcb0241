/** The agent's ServiceAccount, its roles and their bindings, made of the rules in `agent-rights.ts`. Pure. */
import type { PlatformSettings } from '#cli/platform/settings.ts';
import { agentAccount } from '#shared/domain/agent-roles.ts';
import type { ClusterRole, ClusterRoleBinding, Role, ServiceAccount } from '#shared/domain/core-kinds.ts';
import type { KubeObject, RoleBinding } from '#shared/domain/kube-object.ts';
import { systemNamespace } from '#shared/domain/liqo-keys.ts';
import { fabricTenantRole, gatewayConstraintsRole } from '#shared/domain/network-keys.ts';
import { remoteRoles } from '#shared/domain/remote-roles.ts';
import { agentRules, leaseRules, namespaceRules } from './agent-rights.ts';
import { installLabel } from './install-label.ts';

const rbac = 'rbac.authorization.k8s.io';
const subjects = [{ kind: 'ServiceAccount', name: agentAccount, namespace: systemNamespace }];

/** The ServiceAccount of the controllers and all that it may do. */
export const agentRights = (platform?: PlatformSettings): KubeObject[] => [
  clusterRole(
    agentAccount,
    agentRules([
      ...remoteRoles().map(({ metadata }) => metadata.name),
      fabricTenantRole,
      ...(platform?.securityContextConstraints ? [gatewayConstraintsRole] : []),
      ...Object.keys(namespaceRules).sort(),
    ]),
  ),
  ...Object.entries(namespaceRules).map(([name, rules]) => clusterRole(name, rules)),
  clusterRoleBinding(),
  serverCaBinding(),
  serviceAccount(),
  ...Object.entries(leaseRules).flatMap(([namespace, rules]) => [
    leaseRole(namespace, rules),
    roleBinding(leasesName, namespace, { kind: 'Role', name: leasesName }),
  ]),
];

const clusterRole = (name: string, rules: ClusterRole['rules']): ClusterRole => ({
  apiVersion: `${rbac}/v1`,
  kind: 'ClusterRole',
  metadata: { name, labels: { ...installLabel } },
  rules: rules ?? [],
});

const leasesName = `${agentAccount}-leases`;
const leaseRole = (namespace: string, rules: NonNullable<Role['rules']>): Role => ({
  apiVersion: `${rbac}/v1`,
  kind: 'Role',
  metadata: { name: leasesName, namespace, labels: { ...installLabel } },
  rules,
});

const clusterRoleBinding = (): ClusterRoleBinding => ({
  apiVersion: `${rbac}/v1`,
  kind: 'ClusterRoleBinding',
  metadata: { name: agentAccount, labels: { ...installLabel } },
  roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: agentAccount },
  subjects,
});

/** The kubelet endpoint trusts the API server's client CA, which stands in a ConfigMap of kube-system. */
const serverCaBinding = (): RoleBinding =>
  roleBinding(`${agentAccount}-authentication-reader`, 'kube-system', {
    kind: 'Role',
    name: 'extension-apiserver-authentication-reader',
  });

const roleBinding = (
  name: string,
  namespace: string,
  role: { readonly kind: string; readonly name: string },
): RoleBinding => ({
  apiVersion: `${rbac}/v1`,
  kind: 'RoleBinding',
  metadata: { name, namespace, labels: { ...installLabel } },
  roleRef: { apiGroup: rbac, ...role },
  subjects,
});

const serviceAccount = (): ServiceAccount => ({
  apiVersion: 'v1',
  kind: 'ServiceAccount',
  metadata: { name: agentAccount, namespace: systemNamespace, labels: { ...installLabel } },
});
