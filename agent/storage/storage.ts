/** What there is of the storage fabric at the consumer: claims of virtual StorageClasses and the volumes that they get. */
import type { Controller } from '#kube/model/types.ts';
import { createBindingController } from './binding/controller.ts';
import { createCapacityController } from './capacity/controller.ts';
import { createMoveController } from './moves/controller.ts';
import type { MoveDeps } from './moves/observe.ts';
import { createSnapshotController } from './snapshots/controller.ts';
import { createVolumeController } from './volumes/controller.ts';

export const createStorageControllers = (deps: MoveDeps): Controller[] => [
  createBindingController(deps),
  createVolumeController(deps),
  createMoveController(deps),
  createCapacityController(deps),
  createSnapshotController(deps),
];
