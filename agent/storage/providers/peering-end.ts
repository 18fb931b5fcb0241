/** Whether a peering, with all that is at its provider, is over. */
import type { Cache } from '#kube/model/types.ts';
import { annotation } from '#shared/domain/liqo-keys.ts';
import type { ForeignCluster } from '#shared/schema/liqo/foreign-cluster.ts';
import type { VirtualNode } from '#shared/schema/liqo/virtual-node.ts';

/** Why there is nothing to ask `provider` any more; undefined: the peering goes on. */
export function peeringEnd(
  provider: string,
  peers: Cache<ForeignCluster>,
  virtual: Cache<VirtualNode>,
): string | undefined {
  const isDead = peers
    .list()
    .some(
      ({ spec, metadata }) =>
        spec.clusterID === provider && metadata.annotations?.[annotation.permanentlyUnreachable] === 'true',
    );
  if (isDead) return `cluster ${provider} is given up as unreachable: what it has, it keeps`;
  return virtual.list().some(({ spec }) => spec.clusterID === provider)
    ? undefined
    : `the peering with cluster ${provider} has ended: it keeps the data of claims`;
}
