/** Snapshots of claims of a virtual class on two API servers: taken where the volume is, restored there, deleted by policy. By the agent's own account. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openCluster } from '#kube/open-cluster.ts';
import { namespaces, persistentVolumeClaims, storageClasses } from '#shared/domain/core-kinds.ts';
import {
  type VolumeSnapshot,
  type VolumeSnapshotContent,
  volumeSnapshotClasses,
  volumeSnapshotContents,
  volumeSnapshots,
} from '#shared/domain/snapshot-kinds.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { connectAsAgent, giveAgentRights } from '#test/harness/agent-account.ts';
import { eventually } from '#test/harness/eventually.ts';
import { inOrder } from '#test/harness/in-order.ts';
import { createVirtualNode, type OffloadingClusters } from '#test/harness/offloading-clusters.ts';
import {
  installSnapshotKinds,
  type PlayedSnapshots,
  playSnapshotController,
} from '#test/harness/snapshot-controller.ts';
import { selectedNode, startStorageAgent, storageClaims } from '#test/harness/storage-claims.ts';
import { addVirtualNode, startStorageClusters } from '#test/harness/storage-clusters.ts';
import type { VolumeProvisioner } from '#test/harness/volume-provisioner.ts';

const deps = { clock: systemClock, log: silentLog };
const end = new AbortController();
let world: OffloadingClusters;
let running: Promise<unknown>;
let disks: { readonly worker: VolumeProvisioner; readonly vn1: VolumeProvisioner };
let taken: { readonly worker: PlayedSnapshots; readonly vn1: PlayedSnapshots };

// In this order: at first neither cluster has the kinds.
inOrder('file');
beforeAll(async () => {
  const started = await startStorageClusters();
  world = started.world;
  disks = { worker: started.here, vn1: started.there };
  const { consumer, servers } = world;
  await consumer.api.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'liqo' } });
  await giveAgentRights(consumer.api);
  await addVirtualNode(world);
  await createVirtualNode(world, 'vn1', { storageClasses: [{ storageClassName: 'fast', default: true }] });
  const cluster = openCluster(await connectAsAgent(servers.consumer), deps, end.signal);
  running = (await startStorageAgent(world, { cluster }, end.signal)).ended;
}, 900_000);
afterAll(async () => {
  await Promise.all([taken?.worker.stop(), taken?.vn1.stop(), disks?.worker.stop(), disks?.vn1.stop()]);
  end.abort();
  await running;
  await world?.stop();
});

const { makeClaim, claim, remote, bound, removeClaim, event } = storageClaims(() => world);
const makeSnapshot = (name: string, of: string, more: object = {}) =>
  world.consumer.api.create(volumeSnapshots, {
    apiVersion: 'snapshot.storage.k8s.io/v1',
    kind: 'VolumeSnapshot',
    metadata: { namespace: 'shop', name },
    spec: { source: { persistentVolumeClaimName: of }, ...more },
  });
const snapshot = (name: string) => world.consumer.api.get(volumeSnapshots, { namespace: 'shop', name });
const ready = (name: string) =>
  eventually(`snapshot ${name} ready`, async () => {
    const found = await snapshot(name);
    return found?.status?.readyToUse ? found : undefined;
  });
const says = (name: string, text: RegExp) =>
  eventually(`snapshot ${name} to say ${text}`, async () =>
    text.test((await snapshot(name))?.status?.error?.message ?? ''),
  );
const contentOf = async (found: VolumeSnapshot | undefined): Promise<VolumeSnapshotContent | undefined> => {
  const name = found?.status?.boundVolumeSnapshotContentName;
  return name ? world.consumer.api.get(volumeSnapshotContents, { name }) : undefined;
};
const thereOf = ({ metadata }: VolumeSnapshot) =>
  world.provider.api.get(volumeSnapshots, { namespace: 'shop-cons', name: `snapshot-${metadata.uid}` });
const remove = (name: string) => world.consumer.api.delete(volumeSnapshots, { namespace: 'shop', name });
const gone = (name: string) => eventually(`snapshot ${name} gone`, async () => !(await snapshot(name)));
const restored = (name: string) => ({
  dataSource: { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name },
});
const makeClass = (name: string, more: object = {}) =>
  world.consumer.api.create(volumeSnapshotClasses, {
    apiVersion: 'snapshot.storage.k8s.io/v1',
    kind: 'VolumeSnapshotClass',
    metadata: { name },
    driver: 'storage.isthmus.dev',
    deletionPolicy: 'Delete',
    ...more,
  } as never);

test('where the kinds are not installed, claims are made as ever, and one that is to begin as a snapshot says what is missing', async () => {
  await makeClaim('db-vn1', 'vn1');
  await makeClaim('db-worker', 'worker');
  await Promise.all([bound('db-vn1'), bound('db-worker')]);
  await makeClaim('early', 'vn1', restored('monday'));
  expect((await event('early', 'WaitingForVolume')).message).toMatch(
    /the kinds of VolumeSnapshots to be installed in this cluster: spec.dataSource is VolumeSnapshot monday/,
  );
  await removeClaim('early');
});

test('once they are installed here, a snapshot of a claim at a provider without them says so, and is taken when it has them', async () => {
  await installSnapshotKinds(world.consumer);
  const worker = await playSnapshotController(world.consumer);
  disks.worker.handleOf = worker.handleOf;
  await makeClass('isthmus', {
    metadata: { name: 'isthmus', annotations: { 'snapshot.storage.kubernetes.io/is-default-class': 'true' } },
  });
  await makeSnapshot('monday-vn1', 'db-vn1');
  await eventually(
    'the reason',
    async () =>
      /cluster prov takes no snapshot of claim shop-cons\/db-vn1: the kinds of VolumeSnapshots are not installed there/.test(
        (await snapshot('monday-vn1'))?.status?.error?.message ?? '',
      ),
    { withinMs: 60_000 },
  );
  await installSnapshotKinds(world.provider);
  const vn1 = await playSnapshotController(world.provider);
  disks.vn1.handleOf = vn1.handleOf;
  taken = { worker, vn1 };
  const found = await ready('monday-vn1');
  const there = await thereOf(found);
  expect(there).toMatchObject({
    metadata: {
      labels: { 'offloading.liqo.io/origin': 'cons', 'offloading.liqo.io/destination': 'prov' },
      annotations: { 'isthmus.dev/snapshot': 'shop/monday-vn1', 'isthmus.dev/snapshot-uid': found.metadata.uid },
    },
    spec: { source: { persistentVolumeClaimName: 'db-vn1' } },
  });
  const content = await contentOf(found);
  expect(content?.status).toMatchObject({
    snapshotHandle: `prov/shop-cons/snapshot-${found.metadata.uid}`,
    readyToUse: true,
    restoreSize: 2 ** 30,
    creationTime: Date.parse(there?.status?.creationTime ?? '') * 1e6,
  });
  expect(content?.status?.error).toBeUndefined();
  expect(found.status).toMatchObject({ restoreSize: String(2 ** 30), creationTime: there?.status?.creationTime });
  const volume = (await remote('db-vn1'))?.spec?.volumeName;
  expect([...vn1.data.values()]).toEqual([volume]);
});

test('of a claim in this cluster its own driver takes the snapshot, without help', async () => {
  await makeSnapshot('monday-worker', 'db-worker');
  const content = await contentOf(await ready('monday-worker'));
  expect(content?.spec.driver).toBe('records.isthmus.test');
  expect(taken.worker.data.size).toBe(1);
});

test('a claim that is to begin as a snapshot is made where that is, of its data, and nothing is left that was lent', async () => {
  for (const node of ['worker', 'vn1'] as const) {
    await makeClaim(`copy-${node}`, node, restored(`monday-${node}`));
    const made = await bound(`copy-${node}`);
    const real = await eventually('the volume of its real claim', async () => {
      const found =
        node === 'vn1'
          ? await remote(made.metadata.name)
          : await world.consumer.api.get(persistentVolumeClaims, {
              namespace: 'liqo-storage',
              name: made.metadata.uid ?? '',
            });
      return found?.spec?.volumeName ? found : undefined;
    });
    const [handle] = [...taken[node].data.keys()];
    expect(disks[node].copies.get(real.spec?.volumeName ?? '')).toBe(handle);
    await eventually(
      'what was lent to go',
      async () =>
        (await world.consumer.api.list(volumeSnapshotContents, { labelSelector: 'isthmus.dev/restores-claim' }))
          .length === 0 && (await world.consumer.api.list(volumeSnapshots, { namespace: 'liqo-storage' })).length === 0,
    );
    expect([...taken[node].data.keys()]).toEqual([handle]);
    expect((await snapshot(`monday-${node}`))?.status?.readyToUse).toBe(true);
    await removeClaim(made.metadata.name);
  }
});

test('one that the scheduler sends elsewhere is not made there: an event names both places, and the scheduler chooses again', async () => {
  for (const [name, node, of, text] of [
    ['astray', 'worker', 'monday-vn1', /is at cluster prov, and node worker, .* is in this cluster/],
    ['afar', 'vn1', 'monday-worker', /is in this cluster, and node vn1, .* is at cluster prov/],
  ] as const) {
    await makeClaim(name, node, restored(of));
    const { type, message } = await event(name, 'DataSourceElsewhere');
    expect([type, message]).toEqual(['Warning', expect.stringMatching(text)]);
    await eventually('no node selected', async () => !(await claim(name))?.metadata.annotations?.[selectedNode]);
    expect(await remote(name)).toBeUndefined();
    await removeClaim(name);
  }
});

test('a claim waits for its snapshot, and is refused what the snapshot does not have', async () => {
  await makeClaim('waits', 'vn1', restored('tuesday'));
  expect((await event('waits', 'WaitingForVolume')).message).toMatch(/VolumeSnapshot shop\/tuesday, .* to be made/);
  await makeSnapshot('tuesday', 'db-vn1');
  await bound('waits');
  await removeClaim('waits');
  await makeClaim('small', 'vn1', { ...restored('monday-vn1'), resources: { requests: { storage: '1Mi' } } });
  expect((await event('small', 'ProvisioningFailed')).message).toMatch(/storage is 1Mi: accepted is .* or more/);
  await makeClaim('block', 'vn1', { ...restored('monday-vn1'), volumeMode: 'Block' });
  expect((await event('block', 'ProvisioningFailed')).message).toMatch(/volumeMode is Block: accepted is Filesystem/);
  await world.consumer.api.create(storageClasses, {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name: 'path' },
    provisioner: 'path.example.com',
  });
  await world.consumer.api.create(storageClasses, {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name: 'elsewhere' },
    provisioner: 'liqo.io/storage',
    volumeBindingMode: 'WaitForFirstConsumer',
    parameters: { localStorageClass: 'path' },
  });
  await makeClaim('path', 'worker', { ...restored('monday-worker'), storageClassName: 'elsewhere' });
  expect((await event('path', 'ProvisioningFailed')).message).toMatch(
    /of driver records.isthmus.test, and StorageClass path is of provisioner path.example.com/,
  );
  for (const name of ['small', 'block', 'path']) await removeClaim(name);
});

test('a class with parameters, and a class of ours for a volume of this cluster, are refused by name', async () => {
  await makeClass('tuned', { parameters: { color: 'blue' } });
  await makeSnapshot('tuned', 'db-vn1', { volumeSnapshotClassName: 'tuned' });
  await says('tuned', /parameters of VolumeSnapshotClass tuned has color: accepted are none/);
  await makeSnapshot('wrong', 'db-worker', { volumeSnapshotClassName: 'isthmus' });
  await says(
    'wrong',
    /spec.source.volumeHandle is .*, which is not at a provider: accepted is a VolumeSnapshotClass of/,
  );
  for (const name of ['tuned', 'wrong']) {
    await remove(name);
    await gone(name);
  }
});

test('what the provider says against it stands in its status, until it is ready', async () => {
  const { vn1 } = taken;
  vn1.takes = false;
  await makeSnapshot('full', 'db-vn1');
  const found = await eventually('the snapshot there', async () => {
    const here = await snapshot('full');
    return here && (await thereOf(here));
  });
  const content = await eventually('its content', async () =>
    (await world.provider.api.list(volumeSnapshotContents)).find(
      ({ spec }) => spec.volumeSnapshotRef.uid === found.metadata.uid,
    ),
  );
  const said = { status: { readyToUse: false, error: { message: 'no space left' } } };
  await world.provider.api.mergePatch(volumeSnapshotContents, { name: content.metadata.name }, said, {
    subresource: 'status',
  });
  await says('full', /^cluster prov: no space left$/);
  vn1.takes = true;
  await world.provider.api.mergePatch(
    volumeSnapshotContents,
    { name: content.metadata.name },
    {
      metadata: { annotations: { look: 'again' } },
    },
  );
  await ready('full');
  expect((await contentOf(await snapshot('full')))?.status?.error).toBeUndefined();
});

test('with policy Delete its end is ordered at the provider, and with policy Retain nothing ends there', async () => {
  const before = taken.vn1.data.size;
  const found = await ready('full');
  await remove('full');
  await gone('full');
  expect(await thereOf(found)).toBeUndefined();
  expect(taken.vn1.data.size).toBe(before - 1);

  await makeClass('keeps', { deletionPolicy: 'Retain' });
  await makeSnapshot('kept', 'db-vn1', { volumeSnapshotClassName: 'keeps' });
  const kept = await ready('kept');
  const content = await contentOf(kept);
  await remove('kept');
  await gone('kept');
  await world.consumer.api.delete(volumeSnapshotContents, { name: content?.metadata.name ?? '' });
  await eventually(
    'the content to go',
    async () => !(await world.consumer.api.get(volumeSnapshotContents, { name: content?.metadata.name ?? '' })),
  );
  const there = await thereOf(kept);
  expect(there?.metadata.deletionTimestamp).toBeUndefined();
  expect(there?.metadata.annotations?.['isthmus.dev/data']).toBeUndefined();
  expect(taken.vn1.data.size).toBe(before);

  // By its handle it is had again, as with any driver.
  const name = 'again';
  await world.consumer.api.create(volumeSnapshotContents, {
    apiVersion: 'snapshot.storage.k8s.io/v1',
    kind: 'VolumeSnapshotContent',
    metadata: { name },
    spec: {
      deletionPolicy: 'Delete',
      driver: 'storage.isthmus.dev',
      source: { snapshotHandle: content?.status?.snapshotHandle ?? '' },
      sourceVolumeMode: 'Filesystem',
      volumeSnapshotRef: { namespace: 'shop', name },
    },
  });
  await world.consumer.api.create(volumeSnapshots, {
    apiVersion: 'snapshot.storage.k8s.io/v1',
    kind: 'VolumeSnapshot',
    metadata: { namespace: 'shop', name },
    spec: { source: { volumeSnapshotContentName: name } },
  });
  await ready(name);
  await makeClaim('from-again', 'vn1', restored(name));
  await bound('from-again');
  await removeClaim('from-again');
  await remove(name);
  await gone(name);
  expect(await thereOf(kept)).toBeUndefined();
});

test('a snapshot that is gone at its provider is never taken again', async () => {
  const found = await ready('tuesday');
  const there = await thereOf(found);
  await world.provider.api.delete(volumeSnapshots, { namespace: 'shop-cons', name: there?.metadata.name ?? '' });
  await eventually('it to be gone there', async () => !(await thereOf(found)));
  const content = await contentOf(found);
  const name = content?.metadata.name ?? '';
  await world.consumer.api.mergePatch(
    volumeSnapshotContents,
    { name },
    { metadata: { annotations: { look: 'again' } } },
  );
  await eventually('the content to say so', async () => {
    const { status } = (await world.consumer.api.get(volumeSnapshotContents, { name })) ?? {};
    return status?.readyToUse === false && /it is never taken again/.test(status.error?.message ?? '');
  });
  await makeClaim('lost', 'vn1', restored('tuesday'));
  expect((await event('lost', 'WaitingForVolume')).message).toMatch(/never taken again/);
  expect(await thereOf(found)).toBeUndefined();
  await removeClaim('lost');
});
