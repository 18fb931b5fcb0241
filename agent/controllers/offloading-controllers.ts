/** The controllers of pod offloading besides the virtual node: namespaces on both sides and ShadowPods at the provider. */
import type { Cluster, Controller } from '#kube/model/types.ts';
import type { ControllerDeps } from '#kube/run/controller.ts';
import { createNamespaceDefaultsController } from './namespace-defaults/index.ts';
import { createNamespaceMapController } from './namespace-map/index.ts';
import { createNamespaceOffloadingController } from './namespace-offloading/index.ts';
import { createNodeFailureController } from './node-failure/index.ts';
import { createOffloadedClaimController } from './offloaded-claim/index.ts';
import { createSchedulingGateController } from './scheduling-gate/index.ts';
import { createShadowEndpointSliceController } from './shadow-endpoint-slice/index.ts';
import { createShadowPodController } from './shadow-pod/index.ts';

export interface OffloadingControllersDeps extends ControllerDeps {
  readonly cluster: Cluster;
  readonly clusterId: string;
  /** After so long, guests' pods that go on a dead node are deleted by force; 0 or absent: never. */
  readonly nodeFailureMs?: number;
  /** True: guests reach endpoints at third clusters only through their own cluster. */
  readonly denyDirectConnections?: boolean;
}

export const createOffloadingControllers = (deps: OffloadingControllersDeps): Controller[] => [
  createNamespaceOffloadingController(deps),
  createSchedulingGateController(deps),
  createOffloadedClaimController(deps),
  createNamespaceMapController(deps),
  createShadowPodController(deps),
  createNamespaceDefaultsController(deps),
  ...(deps.nodeFailureMs ? [createNodeFailureController({ ...deps, delayMs: deps.nodeFailureMs })] : []),
  createShadowEndpointSliceController(deps),
];
