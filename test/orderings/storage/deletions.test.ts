/** Orders to delete data that rest on what a watch has shown some time ago, or on marks of a cluster that is no more. */
import { expect, test } from 'vitest';
import { type PersistentVolume, persistentVolumeClaims, persistentVolumes, pods } from '#shared/domain/core-kinds.ts';
import { randomOf } from '../orderings.ts';
import { runs, until } from './histories.ts';
import { shop } from './names.ts';
import { StorageWorld } from './world.ts';

/** An application whose data is at milan, and its volume here. */
async function openWorld(seed: number) {
  const world = new StorageWorld(randomOf(seed));
  world.addApp('a');
  const app = world.apps.get('a');
  const milan = world.providers.get('milan');
  if (!app || !milan) throw new Error('no application, or no provider');
  app.pinned = 'milan';
  expect(await until(world, () => runs(world, app) && app.acknowledged.size > 5)).toBe(true);
  const name = world.claim(app)?.spec?.volumeName ?? '';
  const volume = (): PersistentVolume | undefined => world.home.store.now(persistentVolumes, { name });
  return { world, app, milan, volume };
}

test.each([1, 2, 3])(
  'the data of a claim that went stays when its volume was retained before its provider answered again, although the watch has not shown that yet (%i)',
  async (seed) => {
    const { world, app, milan, volume } = await openWorld(seed);
    try {
      milan.store.isCut = true;
      world.apps.delete('a');
      world.home.store.delete(persistentVolumeClaims, { namespace: shop, name: app.claim });
      world.home.store.delete(pods, { namespace: shop, name: app.pod }, { gracePeriodSeconds: 0 });
      // Nothing of it runs any more.
      milan.store.delete(pods, { namespace: 'shop-rome', name: app.pod }, { gracePeriodSeconds: 0 });
      const isReleased = () => volume()?.status?.phase === 'Released' && world.home.store.isQuiet;
      expect(await until(world, isReleased)).toBe(true);
      const disks = [...milan.disks.keys()];
      world.home.store.isDeaf = true;
      const released = volume();
      if (!released) throw new Error('no volume');
      world.home.setSpec(released, { persistentVolumeReclaimPolicy: 'Retain' });
      milan.store.isCut = false;
      const hourLater = world.clock.now() + 3_600_000;
      await until(world, () => world.clock.now() > hourLater);
      expect([...milan.disks.keys()]).toEqual(expect.arrayContaining(disks));
      world.home.store.isDeaf = false;
      expect(await until(world, () => world.home.store.isQuiet)).toBe(true);
      expect([...milan.disks.keys()]).toEqual(expect.arrayContaining(disks));
      expect(volume()?.metadata.deletionTimestamp).toBeUndefined();
      expect(world.faults).toEqual([]);
    } finally {
      world.agents.end();
    }
  },
);
