/** Provider: which VolumeSnapshots of guests count for a consumer, by caches that begin once the kinds of snapshots are served. */
import type { Cache, Cluster, Controller } from '#kube/model/types.ts';
import { type ControllerDeps, createController, watch } from '#kube/run/controller.ts';
import { whenServed } from '#kube/run/when-served.ts';
import { guestVolume } from '#shared/domain/guest-volume-keys.ts';
import type { KubeObject } from '#shared/domain/kube-object.ts';
import { settled } from '#shared/domain/outcome.ts';
import { volumeSnapshotContents, volumeSnapshots } from '#shared/domain/snapshot-kinds.ts';

const name = 'snapshot-usage';
const markOf = ({ metadata }: KubeObject, key: string): string[] => {
  const consumer = metadata.labels?.[key];
  return consumer === undefined ? [] : [consumer];
};

export interface UsageDeps extends ControllerDeps {
  readonly cluster: Pick<Cluster, 'api' | 'caches'>;
}

interface SnapshotUsage {
  readonly controller: Controller;
  /** VolumeSnapshots, and contents that keep the data of those that have ended. Empty until the kinds are served. */
  readonly of: (consumer: string) => readonly KubeObject[];
}

/** `changed`: called with a consumer when one of its snapshots has appeared, changed or gone. */
export function createSnapshotUsage(
  { cluster: { api, caches }, clock, log }: UsageDeps,
  changed: (consumer: string) => void,
): SnapshotUsage {
  const counted: { readonly cache: Cache<KubeObject>; readonly key: string }[] = [];
  const create = (): Controller => {
    // The caches that the controller of guests' snapshots has, too.
    const living = caches.cache(volumeSnapshots, { labelSelector: guestVolume.label });
    const contents = caches.cache(volumeSnapshotContents);
    counted.push(
      { cache: living as Cache<KubeObject>, key: guestVolume.label },
      { cache: contents as Cache<KubeObject>, key: guestVolume.keptFor },
    );
    return createController(
      {
        name,
        workers: 1,
        watches: counted.map(({ cache, key }) => watch(cache, (object) => markOf(object, key))),
        async reconcile(consumer) {
          changed(consumer);
          return settled;
        },
      },
      { clock, log },
    );
  };
  return {
    controller: whenServed({ name, api, types: [volumeSnapshots, volumeSnapshotContents], create }, { clock, log }),
    of: (consumer) =>
      counted.flatMap(({ cache, key }) => cache.list().filter(({ metadata }) => metadata.labels?.[key] === consumer)),
  };
}
