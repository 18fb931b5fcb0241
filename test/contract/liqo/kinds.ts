/** The kinds of which the exchanges are: Liqo's own, and those of Kubernetes that it makes for a peer or for its pods. */
import * as core from '#shared/domain/core-kinds.ts';
import { apiVersionOf, type KubeObject, type ResourceType } from '#shared/domain/kube-object.ts';
import { identities } from '#shared/schema/liqo/identity.ts';
import { namespaceMaps } from '#shared/schema/liqo/namespace-map.ts';
import { namespaceOffloadings } from '#shared/schema/liqo/namespace-offloading.ts';
import { quotas } from '#shared/schema/liqo/quota.ts';
import { renews } from '#shared/schema/liqo/renew.ts';
import { resourceSlices } from '#shared/schema/liqo/resource-slice.ts';
import { shadowPods } from '#shared/schema/liqo/shadow-pod.ts';
import { tenants } from '#shared/schema/liqo/tenant.ts';
import { virtualNodes } from '#shared/schema/liqo/virtual-node.ts';

export const kinds = [
  core.clusterRoleBindings,
  core.clusterRoles,
  core.namespaces,
  core.pods,
  core.roleBindings,
  core.secrets,
  identities,
  namespaceMaps,
  namespaceOffloadings,
  quotas,
  renews,
  resourceSlices,
  shadowPods,
  tenants,
  virtualNodes,
] as readonly ResourceType[] as readonly ResourceType<KubeObject>[];

export function kindOf({
  apiVersion,
  kind,
}: {
  readonly apiVersion: string;
  readonly kind: string;
}): ResourceType<KubeObject> {
  const found = kinds.find((type) => apiVersionOf(type) === apiVersion && type.kind === kind);
  if (found === undefined) throw new Error(`no kind ${apiVersion} ${kind}`);
  return found;
}
