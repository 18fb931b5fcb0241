/** Whose guests are in a namespace of this provider, by its labels and annotations. Pure. */
import type { Namespace } from '#shared/domain/kube-object.ts';
import { annotation, label } from '#shared/domain/liqo-keys.ts';

/** The cluster ID of the consumer; undefined: no guests are in it. Tenant namespaces have the label of a consumer as well, and no guests. */
export function guestsOf(namespace: Namespace | undefined): string | undefined {
  const { labels = {} } = namespace?.metadata ?? {};
  return labels[label.tenantNamespace] === undefined ? labels[label.remoteClusterId] : undefined;
}

/** The cluster ID of the consumer for which a NamespaceMap made this namespace; undefined: none did. */
export function mappedFor(namespace: Namespace | undefined): string | undefined {
  const { annotations = {}, labels = {} } = namespace?.metadata ?? {};
  return annotations[annotation.managedByNamespaceMap] === undefined ? undefined : labels[label.remoteClusterId];
}
