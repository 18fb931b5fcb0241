/** Claims whose end is not to be the end of their data. */
import { type PersistentVolume, persistentVolumeClaims, persistentVolumes, pods } from '#shared/domain/core-kinds.ts';
import { storageAnnotation, storageNamespace } from '#shared/domain/storage-keys.ts';
import { retainedVolumes } from '#shared/schema/isthmus/retained-volume.ts';
import { namespaceOffloadings } from '#shared/schema/liqo/namespace-offloading.ts';
import { randomOf } from '../orderings.ts';
import { runs, until } from './histories.ts';
import { selectedNode } from './kubernetes.ts';
import { leftovers } from './leftovers.ts';
import { consumer, nodeOf, type ProviderName, shop } from './names.ts';
import { DeathsAtEveryWrite } from './scripted.ts';
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

/**
 * The claim of an application goes while `liqoctl move volume` is at work, which then ends without having restored its copy; agents die before and after
 * every write. What was wrong, and what agents survived.
 */
export async function runLiqoctlMove(
  at: 'local' | 'milan',
): Promise<{ readonly faults: readonly string[]; readonly survived: readonly string[] }> {
  const world = new StorageWorld(randomOf(1));
  const faults: string[] = [];
  const must = (isSo: boolean, what: string): void => void (isSo || faults.push(what));
  const deaths = new DeathsAtEveryWrite();
  world.addApp('a');
  const app = world.apps.get('a');
  const cluster = at === 'local' ? world.home : world.providers.get(at);
  if (!app || !cluster) throw new Error('no application, or no provider');
  const offloading = { namespace: storageNamespace, name: 'offloading' };
  try {
    app.pinned = at;
    must(await until(world, () => runs(world, app) && app.acknowledged.size > 5), 'the application does not run');
    const disks = [...cluster.disks.keys()];
    world.home.store.create({ kind: namespaceOffloadings.kind, metadata: offloading, spec: {} } as never);
    world.agents.fate = deaths.fate;
    const volume = { name: world.claim(app)?.spec?.volumeName ?? '' };
    world.apps.delete('a');
    world.home.store.delete(persistentVolumeClaims, { namespace: shop, name: app.claim });
    world.home.store.delete(pods, { namespace: shop, name: app.pod }, { gracePeriodSeconds: 0 });
    const isHandedOver = (): boolean =>
      world.home.store.now(persistentVolumes, volume)?.metadata.annotations?.[storageAnnotation.handedOver] !==
      undefined;
    must(await until(world, isHandedOver), 'the volume is not handed over');
    // The rest happens after it has ended.
    world.home.store.delete(namespaceOffloadings, offloading);
    const records = () => cluster.store.all(retainedVolumes).filter(({ spec }) => spec.claim?.name === app.claim);
    const isDone = () => world.home.store.now(persistentVolumes, volume) === undefined && records().length === 1;
    must(await until(world, isDone), 'there is no record of the data');
    must(await until(world, () => leftovers(world).length === 0), leftovers(world).join('; '));
    must(
      disks.every((disk) => cluster.disks.has(disk)),
      'the data went',
    );
    return { faults: [...faults, ...world.faults], survived: deaths.survived };
  } finally {
    world.agents.end();
  }
}

/**
 * The real claim of an application is ordered to be deleted because another node was chosen; its agent dies with that order, and the first node is chosen
 * after all. Then milan ends the peering. What was wrong.
 */
export async function runChosenAfterAll(): Promise<readonly string[]> {
  const world = new StorageWorld(randomOf(1));
  const faults: string[] = [];
  const must = (isSo: boolean, what: string): void => void (isSo || faults.push(what));
  world.addApp('a');
  const app = world.apps.get('a');
  const milan = world.providers.get('milan');
  if (!app || !milan) throw new Error('no application, or no provider');
  const choose = (provider: ProviderName): void => {
    const claim = world.claim(app);
    if (claim) world.home.annotate(claim, { [selectedNode]: nodeOf(provider) });
  };
  let turn = 'published' as 'published' | 'ordered' | 'over';
  world.agents.fate = (agent, write, body) => {
    if (agent !== consumer) return 'lives';
    if (turn === 'published' && write === 'PersistentVolume create') {
      turn = 'ordered';
      choose('genoa');
      return 'before';
    }
    if (turn === 'ordered' && write === 'PersistentVolumeClaim mergePatch' && body.includes(storageAnnotation.data)) {
      turn = 'over';
      choose('milan');
      return 'after';
    }
    return 'lives';
  };
  try {
    app.pinned = 'milan';
    must(await until(world, () => runs(world, app) && app.acknowledged.size > 5), 'the application does not run');
    must(turn === 'over', 'no real claim was ordered to be deleted');
    const disks = [...milan.disks.keys()];
    must(disks.length === 1, `milan has ${disks.length} volumes`);
    world.unpeer('milan');
    const isListed = () => milan.store.all(retainedVolumes).length === 1 && milan.store.isQuiet;
    must(await until(world, isListed), 'there is no record of the data');
    must(
      disks.every((disk) => milan.disks.has(disk)),
      'the data went',
    );
    return [...faults, ...world.faults];
  } finally {
    world.agents.end();
  }
}
