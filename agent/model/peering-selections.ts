/** The selections by which peering controllers watch built-in kinds; all controllers with the same selection share one list-watch. */
import type { Cache, Caches } from '#kube/model/types.ts';
import {
  type CertificateSigningRequest,
  type ClusterRole,
  type ClusterRoleBinding,
  certificateSigningRequests,
  clusterRoleBindings,
  clusterRoles,
  namespaces,
  nodes,
  roleBindings,
  secrets,
} from '#shared/domain/core-kinds.ts';
import type { KubeObject, Namespace, Node, RoleBinding, Secret } from '#shared/domain/kube-object.ts';
import { authenticationKeysSecret, label, virtualNodeType } from '#shared/domain/liqo-keys.ts';
import { remoteRoleLabel, remoteRoleName } from '#shared/domain/remote-roles.ts';
import { type Tenant, tenants } from '#shared/schema/liqo/tenant.ts';

/** Nothing that clusters tell each other is as large. */
const mostBytes = 64 * 1_024;

/** Consumers may put such labels on Secrets of theirs, and as much into them as an API server takes: that may not fill our memory. */
export function withinBounds(secret: Secret): Secret {
  const { data, ...rest } = secret;
  const bytes = Object.values(data ?? {}).reduce((sum, value) => sum + value.length, 0);
  return bytes <= mostBytes ? secret : (rest as Secret);
}

/** Nonces, kubeconfigs and issued certificates: every Secret that is about one peer. */
export const peerSecrets = (caches: Caches): Cache<Secret> =>
  caches.cache(secrets, { labelSelector: label.remoteClusterId, transform: withinBounds });

export const keysSecret = (caches: Caches, namespace: string): Cache<Secret> =>
  caches.cache(secrets, { namespace, fieldSelector: `metadata.name=${authenticationKeysSecret}` });

export const tenantNamespaces = (caches: Caches): Cache<Namespace> =>
  caches.cache(namespaces, { labelSelector: label.tenantNamespace });

export const virtualNodeNodes = (caches: Caches): Cache<Node> =>
  caches.cache(nodes, { labelSelector: `${label.type}=${virtualNodeType}` });

/** What this cluster has to give: labels, amounts and health of its nodes. Heartbeats are dropped. */
const slimNode = ({ apiVersion, kind, metadata, spec, status }: Node): Node =>
  ({
    apiVersion,
    kind,
    // The cache tells versions and incarnations apart by these two.
    metadata: {
      name: metadata.name,
      uid: metadata.uid,
      resourceVersion: metadata.resourceVersion,
      ...(metadata.labels ? { labels: metadata.labels } : {}),
    },
    ...(spec?.unschedulable || spec?.taints
      ? { spec: { ...(spec.unschedulable && { unschedulable: true }), ...(spec.taints && { taints: spec.taints }) } }
      : {}),
    status: {
      ...(status?.allocatable ? { allocatable: status.allocatable } : {}),
      conditions: (status?.conditions ?? []).map(({ type, status: value, lastTransitionTime }) => ({
        type,
        status: value,
        ...(type === 'Ready' && { lastTransitionTime }),
      })),
    },
  }) as Node;
export const ownNodes = (caches: Caches): Cache<Node> =>
  caches.cache(nodes, { labelSelector: `${label.type}!=${virtualNodeType}`, transform: slimNode });

export const signingRequests = (caches: Caches): Cache<CertificateSigningRequest> =>
  caches.cache(certificateSigningRequests, { labelSelector: label.remoteTenantCsr });

export const peerRoleBindings = (caches: Caches): Cache<RoleBinding> =>
  caches.cache(roleBindings, { labelSelector: label.remoteClusterId });

export const peerClusterRoleBindings = (caches: Caches): Cache<ClusterRoleBinding> =>
  caches.cache(clusterRoleBindings, { labelSelector: label.remoteClusterId });

export const remoteClusterRoles = (caches: Caches): Cache<ClusterRole> =>
  caches.cache(clusterRoles, {
    labelSelector: `${remoteRoleLabel} in (${remoteRoleName.controlPlane},${remoteRoleName.clusterwide})`,
  });

const byCluster = (tenant: Tenant): readonly string[] => [tenant.spec.clusterID];
const tenantIndexes = { cluster: byCluster };
export const tenantsByCluster = (caches: Caches): Cache<Tenant> => caches.cache(tenants, { indexes: tenantIndexes });

export const peerOf = (object: KubeObject): string | undefined => object.metadata.labels?.[label.remoteClusterId];
