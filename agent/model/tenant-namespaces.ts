/** Whether an object that speaks for a peer stands in the namespace of that peer: labels prove nothing, the namespace does. Pure. */
import type { KubeObject, Namespace } from '#shared/domain/kube-object.ts';
import { label, name } from '#shared/domain/liqo-keys.ts';
import { type Outcome, stalled, waiting } from '#shared/domain/outcome.ts';

export type Placement = { readonly peer: string } | { readonly outcome: Outcome };

const retryMs = 30_000;

/** The peer whose tenant namespace this is. */
export const peerOfNamespace = (namespaces: readonly Namespace[], namespace: string | undefined): string | undefined =>
  namespaces.find((one) => one.metadata.name === namespace)?.metadata.labels?.[label.remoteClusterId];

export function placementOf(
  object: KubeObject,
  claimed: string | undefined,
  namespaces: readonly Namespace[],
): Placement {
  if (claimed === undefined || claimed === '') {
    return {
      outcome: stalled(
        'MissingClusterID',
        `label ${label.remoteClusterId} is missing; set it to the cluster ID of the peer`,
      ),
    };
  }
  const own = namespaces.filter((one) => one.metadata.labels?.[label.remoteClusterId] === claimed);
  if (own.length > 1) {
    const names = own.map((one) => one.metadata.name).sort();
    return {
      outcome: stalled(
        'AmbiguousTenantNamespace',
        `namespaces ${names.join(' and ')} are both labelled as the tenant namespace of ${claimed}; keep one`,
      ),
    };
  }
  const [namespace] = own;
  if (namespace === undefined) {
    return {
      outcome: waiting(
        `the tenant namespace of ${claimed} (labels ${label.tenantNamespace}=true and ${label.remoteClusterId}=${claimed}, usually ${name.tenantNamespace(claimed)})`,
        retryMs,
      ),
    };
  }
  if (namespace.metadata.name !== object.metadata.namespace) {
    return {
      outcome: stalled(
        'WrongNamespace',
        `it is in namespace ${object.metadata.namespace}, but the tenant namespace of ${claimed} is ${namespace.metadata.name}; move it there`,
      ),
    };
  }
  return { peer: claimed };
}
