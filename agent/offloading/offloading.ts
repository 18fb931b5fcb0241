/** The controllers of pod offloading besides the virtual node: namespaces on both sides and ShadowPods at the provider. */
import type { PeeringDeps } from '#agent/peering/model/deps.ts';
import type { Cluster, Controller } from '#kube/model/types.ts';
import type { ControllerDeps } from '#kube/run/controller.ts';
import { createOffloadedClaimController } from './consumer/claims/controller.ts';
import { createNamespaceOffloadingController } from './consumer/namespaces/controller.ts';
import { createSchedulingGateController } from './consumer/scheduling-gate/controller.ts';
import { createVirtualNodeCreatorController } from './consumer/virtual-node/creator-controller.ts';
import { createDepartureController } from './provider/departures/controller.ts';
import { createShadowEndpointSliceController } from './provider/endpoints/controller.ts';
import { createNamespaceMapController } from './provider/namespaces/controller.ts';
import { createNamespaceDefaultsController } from './provider/namespaces/defaults-controller.ts';
import { createQuotaController } from './provider/quota/controller.ts';
import { createQuotaUsageController } from './provider/quota/usage-controller.ts';
import { createShadowPodController } from './provider/shadow-pods/controller.ts';
import { createNodeFailureController } from './provider/shadow-pods/node-failure-controller.ts';
import { createGuestSnapshotController } from './provider/snapshots/controller.ts';
import { createGuestClaimController, createRetainedVolumeController } from './provider/storage/controller.ts';

/** What becomes of a slice once it is granted: the Quota at the provider, the VirtualNode at the consumer. */
export const createGrantedSliceControllers = (deps: PeeringDeps): Controller[] =>
  [createQuotaController, createQuotaUsageController, createVirtualNodeCreatorController].map((create) => create(deps));

export interface OffloadingControllersDeps extends ControllerDeps {
  readonly cluster: Cluster;
  readonly clusterId: string;
  /** After so long, guests' pods that go on a dead node are deleted by force; 0 or absent: never. */
  readonly nodeFailureMs?: number;
}

export const createOffloadingControllers = (deps: OffloadingControllersDeps): Controller[] => [
  createNamespaceOffloadingController(deps),
  createSchedulingGateController(deps),
  createOffloadedClaimController(deps),
  createNamespaceMapController(deps),
  createShadowPodController(deps),
  createDepartureController(deps),
  createNamespaceDefaultsController(deps),
  createGuestClaimController(deps),
  createRetainedVolumeController(deps),
  createGuestSnapshotController(deps),
  ...(deps.nodeFailureMs ? [createNodeFailureController({ ...deps, delayMs: deps.nodeFailureMs })] : []),
  createShadowEndpointSliceController(deps),
];
