/** What every controller of the network is given. */
import type { ControllerDeps } from '#agent/kube/controller.ts';
import type { Cluster } from '#agent/kube/types.ts';
import type { NetworkIpam } from './network-ipam.ts';

export interface NetworkDeps extends ControllerDeps {
  readonly cluster: Cluster;
  readonly clusterId: string;
  readonly systemNamespace: string;
}

/** What the controllers of ranges and addresses share. */
export interface RangeDeps extends NetworkDeps {
  readonly state: NetworkIpam;
}
