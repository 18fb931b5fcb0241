/** Pods of Isthmus itself in a cluster: of the agent, the node processes and the gateways. */
import { pods } from '#shared/domain/core-kinds.ts';
import type { KubeObject, Namespace, Pod, ResourceType } from '#shared/domain/kube-object.ts';
import { label, systemNamespace } from '#shared/domain/liqo-keys.ts';
import { networkLabel } from '#shared/domain/network-keys.ts';

/** Of all namespaces unless one is named. */
export type List = <T extends KubeObject>(type: ResourceType<T>, selector?: string, namespace?: string) => Promise<T[]>;

export const tenantNamespacesOf = (all: readonly Namespace[]): string[] =>
  all
    .filter(({ metadata }) => metadata.labels?.[label.tenantNamespace] !== undefined)
    .map(({ metadata }) => metadata.name);

/** By namespace first: guests choose the labels of their pods. Node processes and agent are in the system namespace, gateways in those of tenants. */
export async function ownPodsOf(list: List, tenantNamespaces: readonly string[]): Promise<Pod[]> {
  const [system, gateways] = await Promise.all([
    list(pods, undefined, systemNamespace),
    list(pods, `${networkLabel.component}=gateway`),
  ]);
  return [...system, ...gateways.filter(({ metadata }) => tenantNamespaces.includes(metadata.namespace ?? ''))];
}
