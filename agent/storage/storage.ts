/** What there is of the storage fabric at the consumer: claims of virtual StorageClasses and the volumes that they get. */
import type { Controller } from '#kube/model/types.ts';
import { type BindingDeps, createBindingController } from './binding/controller.ts';
import { createVolumeController } from './volumes/controller.ts';

export const createStorageControllers = (deps: BindingDeps): Controller[] => [
  createBindingController(deps),
  createVolumeController(deps),
];
