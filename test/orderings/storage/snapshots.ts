/** A snapshot of a claim that is written to, a claim that begins as that, and both ends of it, while the agents die before and after every write. */
import { guestVolume } from '#shared/domain/guest-volume-keys.ts';
import { volumeSnapshotContents, volumeSnapshots } from '#shared/domain/snapshot-kinds.ts';
import { randomOf } from '../orderings.ts';
import { diskOf } from './copies.ts';
import { isResting, runs, until } from './histories.ts';
import { leftovers } from './leftovers.ts';
import { consumer, type ProviderName, shop } from './names.ts';
import { StorageWorld } from './world.ts';

export interface SnapshotScript {
  readonly seed: number;
  readonly at: ProviderName | 'local';
  /** Where the source is moved to once the snapshot is taken. */
  readonly movedTo?: ProviderName | 'local';
  readonly dies: boolean;
  /** How the snapshot ends: by its deletion, or with the peering. */
  readonly end: 'deleted' | 'unpeered';
}

export interface SnapshotEnd {
  readonly faults: readonly string[];
  /** Lines that were acknowledged when the snapshot was asked for, and that the restored volume lacks. */
  readonly missing: number;
  /** Lines that were acknowledged after it was ready, and that the restored volume has all the same. */
  readonly later: number;
  readonly had: number;
  readonly written: number;
  /** Of the restored volume. */
  readonly cluster: string | undefined;
  readonly deaths: number;
  readonly rescheduled: number;
  /** Snapshots that the storage of all clusters still has in the end. */
  readonly data: number;
  /** Contents that are kept for the consumer, in all clusters. */
  readonly kept: number;
}

const name = 'monday';

/** Of snapshots, what has no owner: nothing that was lent, and no content without its VolumeSnapshot but what is kept. */
function strays(world: StorageWorld): string[] {
  return world.clusters.flatMap((cluster) => {
    const snapshots = new Set(cluster.store.all(volumeSnapshots).map(({ metadata }) => metadata.uid));
    return cluster.store
      .all(volumeSnapshotContents)
      .filter(
        ({ metadata, spec }) =>
          metadata.labels?.[guestVolume.keptFor] === undefined && !snapshots.has(spec.volumeSnapshotRef.uid),
      )
      .map(({ metadata }) => `content ${metadata.name} of ${cluster.name} has no VolumeSnapshot`);
  });
}

export async function runSnapshot({ seed, at, movedTo, dies, end }: SnapshotScript): Promise<SnapshotEnd> {
  const world = new StorageWorld(randomOf(seed));
  const count = new Map<string, number>();
  const stuck: string[] = [];
  let deaths = 0;
  let rescheduled = 0;
  const must = async (what: string, holds: () => boolean): Promise<void> => {
    if (stuck.length === 0 && !(await until(world, holds))) stuck.push(`not in time: ${what}`);
  };
  const { store } = world.home;
  const snapshot = () => store.now(volumeSnapshots, { namespace: shop, name });
  const dataOf = (): number => world.clusters.reduce((sum, one) => sum + one.snapshots.data.size, 0);
  world.addApp('a');
  const source = world.apps.get('a');
  if (!source) throw new Error('no application');
  try {
    source.pinned = at;
    await must('the source runs', () => runs(world, source) && source.acknowledged.size > 5);
    world.agents.fate = (agent, write, body) => {
      if (write === 'PersistentVolumeClaim mergePatch' && body.includes('selected-node')) rescheduled += 1;
      if (!dies) return 'lives';
      const key = `${agent} ${write} ${body}`;
      const earlier = count.get(key) ?? 0;
      count.set(key, earlier + 1);
      if (earlier > 1) return 'lives';
      deaths += 1;
      return earlier === 0 ? 'before' : 'after';
    };
    const had = new Set(source.acknowledged);
    store.create({
      apiVersion: 'snapshot.storage.k8s.io/v1',
      kind: volumeSnapshots.kind,
      metadata: { namespace: shop, name },
      spec: { source: { persistentVolumeClaimName: source.claim } },
    } as never);
    await must('the snapshot is ready', () => snapshot()?.status?.readyToUse === true);
    if (dataOf() !== 1) stuck.push(`${dataOf()} snapshots were taken`);
    const before = new Set(source.acknowledged);
    await must('more is written', () => source.acknowledged.size > before.size + 5);
    const later = new Set([...source.acknowledged].filter((line) => !before.has(line)));
    if (movedTo !== undefined) {
      world.startMove(source, movedTo);
      await must('the source has moved', () => isResting(world, source) && runs(world, source));
    }
    world.addApp('b', { snapshot: name });
    const restored = world.apps.get('b');
    if (!restored) throw new Error('no application');
    restored.pinned = at === 'genoa' ? 'local' : 'genoa';
    await must('the scheduler is asked to choose again', () => rescheduled > 1);
    delete restored.pinned;
    const isLent = (): boolean =>
      store.all(volumeSnapshotContents).some(({ metadata }) => metadata.name.startsWith('isthmus-import-'));
    await must(
      'the restored one runs, and nothing is lent any more',
      () => runs(world, restored) && runs(world, source) && !isLent() && leftovers(world).length === 0,
    );
    const disk = diskOf(world, restored);
    const lines = disk?.lines ?? new Set<number>();
    const result = {
      missing: [...had].filter((line) => !lines.has(line)).length,
      later: [...later].filter((line) => lines.has(line)).length,
      had: had.size,
      written: later.size,
      cluster: disk?.cluster,
    };
    if (dataOf() !== 1) stuck.push(`${dataOf()} snapshots are there after the restore`);
    if (end === 'deleted') {
      store.delete(volumeSnapshots, { namespace: shop, name });
      await must('the snapshot is gone', () => snapshot() === undefined && dataOf() === 0);
      await must('nothing is left of it', () => strays(world).length === 0);
    } else if (at !== 'local') {
      // Its applications go first: what becomes of their claims is another matter.
      world.unpeer(at);
      await must('the provider has let its VolumeSnapshots go', () =>
        world.clusters.every((one) => one.name === consumer || one.store.all(volumeSnapshots).length === 0),
      );
      store.delete(volumeSnapshots, { namespace: shop, name });
      await must('the snapshot is gone here', () => snapshot() === undefined && strays(world).length === 0);
    }
    const kept = world.clusters.reduce(
      (sum, one) =>
        sum +
        one.store.all(volumeSnapshotContents).filter(({ metadata }) => metadata.labels?.[guestVolume.keptFor]).length,
      0,
    );
    return { ...result, faults: [...world.faults, ...stuck], deaths, rescheduled, data: dataOf(), kept };
  } finally {
    world.agents.end();
  }
}
