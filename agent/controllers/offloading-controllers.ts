/** The controllers of pod offloading besides the virtual node: namespaces on both sides and ShadowPods at the provider. */
import type { Cluster, Controller } from '#agent/kube/types.ts';
import type { Clock } from '#shared/ports/clock.ts';
import type { Log } from '#shared/ports/log.ts';
import { createNamespaceMapController } from './namespace-map/index.ts';
import { createNamespaceOffloadingController } from './namespace-offloading/index.ts';
import { createShadowPodController } from './shadow-pod/index.ts';

export interface OffloadingControllersDeps {
  readonly cluster: Cluster;
  readonly clusterId: string;
  readonly clock: Clock;
  readonly log: Log;
}

export const createOffloadingControllers = (deps: OffloadingControllersDeps): Controller[] => [
  createNamespaceOffloadingController(deps),
  createNamespaceMapController(deps),
  createShadowPodController(deps),
];
