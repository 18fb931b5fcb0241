/** Keeps kube-scheduler informed of free storage, here and at providers, by CSIStorageCapacity objects. */
import { csiCapacityCache, csiDriverCache } from '#agent/model/storage-capacity.ts';
import type { Cluster, Controller } from '#kube/model/types.ts';
import { type ControllerDeps, createController, watch } from '#kube/run/controller.ts';
import { deleteObject } from '#kube/writes/write-if-changed.ts';
import { csiStorageCapacities, storageClasses } from '#shared/domain/core-kinds.ts';
import { refOf } from '#shared/domain/kube-object.ts';
import { again, type Outcome, settled } from '#shared/domain/outcome.ts';
import { unreachable } from '#shared/domain/unreachable.ts';
import { codeOf } from '#shared/errors/app-error.ts';
import { virtualNodes } from '#shared/schema/liqo/virtual-node.ts';
import { type Action, decide } from './decide.ts';

interface CapacityDeps extends ControllerDeps {
  readonly cluster: Cluster;
}

/** All of them are one subject: few classes, a segment for each provider. */
const everything = 'capacity';
/** What a cache does not show yet. */
const staleMs = 200;
/** The answers that say so. Other ones are failures: of a creation also that the namespace is not there. */
const stale: Readonly<Record<Action['do'], readonly string[]>> = {
  create: ['kube_already_exists'],
  resize: ['kube_conflict', 'kube_not_found'],
  remove: ['kube_conflict'],
};

export function createCapacityController({ cluster, ...deps }: CapacityDeps): Controller {
  const { api, caches } = cluster;
  const classes = caches.cache(storageClasses);
  const drivers = csiDriverCache(caches);
  const capacities = csiCapacityCache(caches);
  const virtual = caches.cache(virtualNodes);
  const key = (): string[] => [everything];

  async function perform(action: Action, signal: AbortSignal): Promise<void> {
    const { object } = action;
    switch (action.do) {
      case 'create':
        await api.create(csiStorageCapacities, object, { answer: 'metadata' }, signal);
        return;
      case 'resize': {
        const { uid, resourceVersion } = object.metadata;
        const patch = { metadata: { uid, resourceVersion }, capacity: action.capacity, maximumVolumeSize: null };
        await api.mergePatch(csiStorageCapacities, refOf(object), patch, { answer: 'metadata' }, signal);
        return;
      }
      case 'remove':
        await deleteObject(api, csiStorageCapacities, object, signal);
        return;
      default:
        return unreachable(action);
    }
  }

  async function reconcile(_: string, signal: AbortSignal): Promise<Outcome> {
    const actions = decide({
      classes: classes.list(),
      drivers: drivers.list(),
      capacities: capacities.list(),
      virtualNodes: virtual.list(),
    });
    let isStale = false;
    const failures: unknown[] = [];
    for (const action of actions) {
      try {
        await perform(action, signal);
      } catch (error) {
        // One that is refused, by a policy of the cluster say, keeps none of the others back.
        if (stale[action.do].includes(codeOf(error) ?? '')) isStale = true;
        else failures.push(error);
      }
    }
    if (failures.length > 0) throw failures[0];
    return isStale ? again(staleMs) : settled;
  }

  return createController(
    {
      name: 'storage-capacity',
      workers: 1,
      watches: [watch(classes, key), watch(drivers, key), watch(capacities, key), watch(virtual, key)],
      reconcile,
    },
    deps,
  );
}
