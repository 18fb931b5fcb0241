/** The network link to a provider, as its summary says. */
import { type ForeignCluster, foreignClusters } from '#shared/schema/liqo/foreign-cluster.ts';
import type { VirtualNode } from '#shared/schema/liqo/virtual-node.ts';
import { type NetworkState, networkState } from '../forge/node.ts';
import type { Caches } from '../kube/types.ts';

export interface Link {
  state(): NetworkState;
  /** Calls back when the state has changed; returns the function that ends it. */
  follow(): () => void;
}

export function createLink(caches: Caches, virtualNode: () => VirtualNode, onChange: () => void): Link {
  const peers = caches.cache(foreignClusters);
  const stateOf = (foreign: ForeignCluster | undefined): NetworkState =>
    networkState(foreign, virtualNode().spec.disableNetworkCheck);
  const isPeers = (foreign: ForeignCluster | undefined): boolean =>
    foreign?.spec.clusterID === virtualNode().spec.clusterID;
  return {
    state: () => stateOf(peers.list().find(isPeers)),
    follow: () =>
      peers.subscribe(({ before, after }) => {
        if (isPeers(after ?? before) && stateOf(before) !== stateOf(after)) onChange();
      }),
  };
}
