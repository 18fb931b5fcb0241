/** What every controller of the network is given. */
import type { Cluster } from '#kube/model/types.ts';
import type { ControllerDeps } from '#kube/run/controller.ts';
import type { NetworkIpam } from '../ranges/cluster-ipam.ts';

export interface NetworkDeps extends ControllerDeps {
  readonly cluster: Cluster;
  readonly clusterId: string;
  readonly systemNamespace: string;
}

/** What the controllers of ranges and addresses share. */
export interface RangeDeps extends NetworkDeps {
  readonly state: NetworkIpam;
}
