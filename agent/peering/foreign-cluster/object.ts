/** The summary object of one peer. */
import { apiVersionOf } from '#shared/domain/kube-object.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import { type ForeignCluster, foreignClusters } from '#shared/schema/liqo/foreign-cluster.ts';

export const buildForeignCluster = (peer: string): ForeignCluster => ({
  apiVersion: apiVersionOf(foreignClusters),
  kind: foreignClusters.kind,
  metadata: { name: peer, labels: { [label.managed]: 'true', [label.remoteClusterId]: peer } },
  spec: { clusterID: peer },
});
