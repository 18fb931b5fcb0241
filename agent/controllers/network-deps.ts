/** What every controller of the network is given. */
import type { ControllerDeps } from '#agent/kube/controller.ts';
import type { Cluster } from '#agent/kube/types.ts';

export interface NetworkDeps extends ControllerDeps {
  readonly cluster: Cluster;
  readonly clusterId: string;
  readonly systemNamespace: string;
}
