/** Peers that an administrator declared permanently gone: no controller waits for them. The annotation alone counts. Pure. */
import type { KubeObject } from '#shared/domain/kube-object.ts';
import { annotation } from '#shared/domain/liqo-keys.ts';
import type { ForeignCluster } from '#shared/schema/liqo/foreign-cluster.ts';

const isDeclaredDead = (object: KubeObject): boolean =>
  object.metadata.annotations?.[annotation.permanentlyUnreachable] === 'true';

export const isPeerDead = (clusters: readonly ForeignCluster[], peer: string): boolean =>
  clusters.some((cluster) => cluster.spec.clusterID === peer && isDeclaredDead(cluster));
