/** Namespace: the tenant namespace; at a provider also the namespaces that it gave to a consumer. */
import { namespaces } from '#shared/domain/core-kinds.ts';
import type { KubeObject } from '#shared/domain/kube-object.ts';
import { annotation, label } from '#shared/domain/liqo-keys.ts';
import { tenantNamespaceOf } from './derived.ts';
import { type BrokerKind, bothRoles, type PeeringKey, peeringLabels, watched } from './kind.ts';

export const namespace: BrokerKind<'Namespace'> = {
  type: namespaces,
  accepted: {
    roles: bothRoles,
    names: (set) => [tenantNamespaceOf(set)],
    labels: [
      ...peeringLabels,
      label.tenantNamespace,
      'pod-security.kubernetes.io/enforce',
      'pod-security.kubernetes.io/audit',
      'pod-security.kubernetes.io/warn',
    ],
    annotations: [],
    members: {},
  },
  caches: watched(namespaces, { labelSelector: label.remoteClusterId }),
  isDerived: (object, set) => object.metadata.name === tenantNamespaceOf(set) || wasMapped(object, set),
  observed: () => ({}),
  takedown: { consumer: 'namespace', provider: 'namespace' },
  removedBy: 'agent',
  isHome: true,
};

/** At a provider whose peering ends: given to the consumer by its NamespaceMap. While the peering lasts, the broker does not manage them. */
function wasMapped({ metadata }: KubeObject, set: PeeringKey): boolean {
  if (set.role !== 'provider' || set.state !== 'absent') return false;
  const map = metadata.annotations?.[annotation.managedByNamespaceMap];
  return metadata.labels?.[label.remoteClusterId] === set.peer && (map ?? '').startsWith(`${tenantNamespaceOf(set)}/`);
}
