/** Orders to delete data that rest on what a watch has shown some time ago. */
import { type PersistentVolume, persistentVolumeClaims, persistentVolumes, pods } from '#shared/domain/core-kinds.ts';
import { randomOf } from '../orderings.ts';
import { runs, until } from './histories.ts';
import { shop } from './names.ts';
import { StorageWorld } from './world.ts';

/**
 * The claim of an application whose data is at milan goes while milan does not answer, and its volume is set to Retain while the watch here shows
 * nothing any more; then milan answers. What was wrong.
 */
export async function runLateRetain(seed: number): Promise<readonly string[]> {
  const world = new StorageWorld(randomOf(seed));
  const faults: string[] = [];
  const must = (isSo: boolean, what: string): void => void (isSo || faults.push(what));
  world.addApp('a');
  const app = world.apps.get('a');
  const milan = world.providers.get('milan');
  if (!app || !milan) throw new Error('no application, or no provider');
  try {
    app.pinned = 'milan';
    must(await until(world, () => runs(world, app) && app.acknowledged.size > 5), 'the application does not run');
    const name = world.claim(app)?.spec?.volumeName ?? '';
    const volume = (): PersistentVolume | undefined => world.home.store.now(persistentVolumes, { name });
    milan.store.isCut = true;
    world.apps.delete('a');
    world.home.store.delete(persistentVolumeClaims, { namespace: shop, name: app.claim });
    world.home.store.delete(pods, { namespace: shop, name: app.pod }, { gracePeriodSeconds: 0 });
    // Nothing of it runs any more.
    milan.store.delete(pods, { namespace: 'shop-rome', name: app.pod }, { gracePeriodSeconds: 0 });
    const isReleased = () => volume()?.status?.phase === 'Released' && world.home.store.isQuiet;
    must(await until(world, isReleased), 'the volume is not released');
    const disks = [...milan.disks.keys()];
    const isThere = () => disks.every((disk) => milan.disks.has(disk));
    world.home.store.isDeaf = true;
    const released = volume();
    if (!released) throw new Error('no volume');
    world.home.setSpec(released, { persistentVolumeReclaimPolicy: 'Retain' });
    milan.store.isCut = false;
    const hourLater = world.clock.now() + 3_600_000;
    await until(world, () => world.clock.now() > hourLater);
    must(isThere(), 'the data of a retained volume went while the watch had not shown the policy');
    world.home.store.isDeaf = false;
    must(await until(world, () => world.home.store.isQuiet), 'it does not come to rest');
    must(isThere(), 'the data of a retained volume went');
    must(volume() !== undefined && volume()?.metadata.deletionTimestamp === undefined, 'the volume went');
    return [...faults, ...world.faults];
  } finally {
    world.agents.end();
  }
}
