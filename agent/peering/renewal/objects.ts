/** The standing request of a consumer to have its control-plane certificate renewed. */
import type { Applied } from '#kube/model/types.ts';
import { ownerOf } from '#kube/writes/owner-references.ts';
import { apiVersionOf } from '#shared/domain/kube-object.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import { type Identity, identities } from '#shared/schema/liqo/identity.ts';
import { type Renew, renews } from '#shared/schema/liqo/renew.ts';

export function buildRenew(identity: Identity, consumer: string): Applied<Renew> {
  const provider = identity.spec.clusterID;
  return {
    apiVersion: apiVersionOf(renews),
    kind: renews.kind,
    metadata: {
      name: identity.metadata.name,
      namespace: identity.metadata.namespace ?? '',
      labels: {
        [label.managed]: 'true',
        [label.replication]: 'true',
        [label.remoteId]: provider,
        [label.remoteClusterId]: provider,
      },
      ownerReferences: [ownerOf(identities, identity)],
    },
    spec: { consumerClusterID: consumer, identityType: 'ControlPlane' },
  };
}
