/** Whose guests are in a namespace of this provider, by its labels. Pure. */
import type { Namespace } from '#shared/domain/kube-object.ts';
import { label } from '#shared/domain/liqo-keys.ts';

/** The cluster ID of the consumer; undefined: no guests are in it. Tenant namespaces have the label of a consumer as well, and no guests. */
export function guestsOf(namespace: Namespace | undefined): string | undefined {
  const { labels = {} } = namespace?.metadata ?? {};
  return labels[label.tenantNamespace] === undefined ? labels[label.remoteClusterId] : undefined;
}
