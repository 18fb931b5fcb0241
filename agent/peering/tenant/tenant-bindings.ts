/** The role bindings by which a provider lets one consumer in: by the names in its certificates, and by the accounts that have tokens. */
import type { AccountSubject } from '#agent/model/peer-accounts.ts';
import { ownerOf } from '#kube/writes/owner-references.ts';
import type { ClusterRole, ClusterRoleBinding } from '#shared/domain/core-kinds.ts';
import { clusterRoleBindings, roleBindings } from '#shared/domain/core-kinds.ts';
import { apiVersionOf, type RoleBinding } from '#shared/domain/kube-object.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import { type Tenant, tenants } from '#shared/schema/liqo/tenant.ts';

const rbac = 'rbac.authorization.k8s.io';
const bindingLabels = (consumer: string): Record<string, string> => ({
  [label.managed]: 'true',
  'app.kubernetes.io/managed-by': 'liqo',
  [label.remoteClusterId]: consumer,
});
const roleRef = (role: ClusterRole): ClusterRoleBinding['roleRef'] => ({
  apiGroup: rbac,
  kind: 'ClusterRole',
  name: role.metadata.name,
});

const tenantBindingName = (role: ClusterRole): string => `liqo-binding-${role.metadata.name}`;
const clusterwideBindingName = (role: ClusterRole, consumer: string): string =>
  `liqo-binding-${role.metadata.name}-${consumer}`;

/** Control-plane rights, in the tenant namespace only. */
export const buildTenantBinding = (
  tenant: Tenant,
  role: ClusterRole,
  accounts: readonly AccountSubject[],
): RoleBinding => ({
  apiVersion: apiVersionOf(roleBindings),
  kind: roleBindings.kind,
  metadata: {
    name: tenantBindingName(role),
    namespace: tenant.metadata.namespace ?? '',
    labels: bindingLabels(tenant.spec.clusterID),
    ownerReferences: [ownerOf(tenants, tenant)],
  },
  subjects: [{ apiGroup: rbac, kind: 'User', name: tenant.spec.clusterID }, ...accounts],
  roleRef: roleRef(role),
});

/** What virtual nodes of this consumer may do everywhere. A namespaced Tenant cannot own it: the Tenant's finalizer removes it. */
export const buildClusterwideBinding = (
  tenant: Tenant,
  role: ClusterRole,
  accounts: readonly AccountSubject[],
): ClusterRoleBinding => ({
  apiVersion: apiVersionOf(clusterRoleBindings),
  kind: clusterRoleBindings.kind,
  metadata: {
    name: clusterwideBindingName(role, tenant.spec.clusterID),
    labels: bindingLabels(tenant.spec.clusterID),
  },
  subjects: [{ apiGroup: rbac, kind: 'Group', name: tenant.spec.clusterID }, ...accounts],
  roleRef: roleRef(role),
});
