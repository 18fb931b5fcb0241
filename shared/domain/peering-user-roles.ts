/**
 * What a peering user may do at its provider: just what `liqoctl peer` and `unpeer` do there, in one tenant namespace, and a look at the
 * installation (docs/design/control-plane.md#what-may-a-peering-user-do). liqoctl finds each by its component label, exactly one. No `watch`, which liqoctl
 * does not use: Kubernetes asks for rights when a watch begins and never again, so that it would outlive them.
 */
import type { ClusterRole, Role } from './core-kinds.ts';
import { label, systemNamespace } from './liqo-keys.ts';

type Rule = NonNullable<ClusterRole['rules']>[number];

const rule = (apiGroup: string, resources: string[], verbs: string[]): Rule => ({
  apiGroups: [apiGroup],
  resources,
  verbs,
});
const apiVersion = 'rbac.authorization.k8s.io/v1';
const labels = {
  'app.kubernetes.io/component': 'peering-user',
  'app.kubernetes.io/part-of': 'liqo',
  [label.managed]: 'true',
};
const write = ['create', 'delete', 'get', 'list', 'update'];

/** ClusterRole, bound in the tenant namespace of the consumer. */
export const peeringUserTenantRole = 'liqo-peering-user-tenant-ns';
/** Role in the system namespace. */
export const peeringUserSystemRole = 'liqo-peering-user-liqo-ns';

export const tenantRoleOfPeeringUsers = (): ClusterRole => ({
  apiVersion,
  kind: 'ClusterRole',
  metadata: { name: peeringUserTenantRole, labels },
  rules: [
    rule('', ['namespaces', 'services'], ['get']),
    rule('', ['secrets'], ['create', 'delete', 'get', 'list']),
    rule('apps', ['deployments'], ['get']),
    rule('authentication.liqo.io', ['tenants'], write),
    rule('ipam.liqo.io', ['ips'], ['create', 'delete', 'get', 'update']),
    rule('networking.liqo.io', ['configurations', 'gatewayclients', 'gatewayservers', 'publickeies'], write),
    rule('networking.liqo.io', ['connections'], ['get', 'list']),
    rule('networking.liqo.io', ['gatewayclients/status', 'gatewayservers/status'], ['get']),
  ],
});

export const systemRoleOfPeeringUsers = (): Role => ({
  apiVersion,
  kind: 'Role',
  metadata: { name: peeringUserSystemRole, namespace: systemNamespace, labels },
  rules: [
    rule('', ['configmaps'], ['get', 'list']),
    rule('ipam.liqo.io', ['ips'], ['get']),
    rule('ipam.liqo.io', ['networks'], ['get', 'list']),
    rule('networking.liqo.io', ['wggatewayclienttemplates', 'wggatewayservertemplates'], ['get', 'list']),
  ],
});
