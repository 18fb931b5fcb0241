/** The consumer's agent dies at every single write of a snapshot's life, in turn: after its restart the end is the same as without. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { KubeApi } from '#kube/model/types.ts';
import { persistentVolumeClaims } from '#shared/domain/core-kinds.ts';
import type { KubeObject } from '#shared/domain/kube-object.ts';
import { volumeSnapshotClasses, volumeSnapshotContents, volumeSnapshots } from '#shared/domain/snapshot-kinds.ts';
import { casesOf } from '#test/harness/cases.ts';
import { crashingPair } from '#test/harness/crashing-client.ts';
import { eventually } from '#test/harness/eventually.ts';
import { createVirtualNode, type OffloadingClusters } from '#test/harness/offloading-clusters.ts';
import {
  installSnapshotKinds,
  type PlayedSnapshots,
  playSnapshotController,
} from '#test/harness/snapshot-controller.ts';
import { startStorageAgent, storageClaims } from '#test/harness/storage-claims.ts';
import { addVirtualNode, startStorageClusters } from '#test/harness/storage-clusters.ts';
import type { VolumeProvisioner } from '#test/harness/volume-provisioner.ts';

const end = new AbortController();
const moments = casesOf([0, 1, 2, 3, 4, 5, 6, 7], [1, 2, 3]);
let world: OffloadingClusters;
let disks: { readonly worker: VolumeProvisioner; readonly vn1: VolumeProvisioner };
let taken: { readonly worker: PlayedSnapshots; readonly vn1: PlayedSnapshots };

beforeAll(async () => {
  const started = await startStorageClusters();
  world = started.world;
  disks = { worker: started.here, vn1: started.there };
  await Promise.all([installSnapshotKinds(world.consumer), installSnapshotKinds(world.provider)]);
  taken = { worker: await playSnapshotController(world.consumer), vn1: await playSnapshotController(world.provider) };
  for (const node of ['worker', 'vn1'] as const) disks[node].handleOf = taken[node].handleOf;
  await world.consumer.api.create(volumeSnapshotClasses, {
    apiVersion: 'snapshot.storage.k8s.io/v1',
    kind: 'VolumeSnapshotClass',
    metadata: { name: 'isthmus', annotations: { 'snapshot.storage.kubernetes.io/is-default-class': 'true' } },
    driver: 'storage.isthmus.dev',
    deletionPolicy: 'Delete',
  });
  await addVirtualNode(world);
  await createVirtualNode(world, 'vn1', { storageClasses: [{ storageClassName: 'fast', default: true }] });
  const stop = await start();
  for (const node of ['worker', 'vn1']) {
    await makeClaim(`db-${node}`, node);
    await eventually(`claim db-${node} bound`, () => isBound(`db-${node}`));
  }
  await eventually('a volume there', async () => {
    const real = await world.provider.api.get(persistentVolumeClaims, { namespace: 'shop-cons', name: 'db-vn1' });
    return real?.status?.phase === 'Bound';
  });
  stop();
}, 900_000);
afterAll(async () => {
  await Promise.all([taken?.worker.stop(), taken?.vn1.stop(), disks?.worker.stop(), disks?.vn1.stop()]);
  end.abort();
  await world?.stop();
});

async function start(through?: { readonly home: KubeApi; readonly there: KubeApi }): Promise<() => void> {
  const stop = new AbortController();
  const cluster = { ...world.consumer, ...(through && { api: through.home }), events: { emit() {} } };
  await startStorageAgent(world, { cluster, ...(through && { there: through.there }) }, stop.signal);
  return () => stop.abort();
}

async function interrupted(
  moment: number,
  act: () => Promise<unknown>,
  reached: () => Promise<unknown>,
): Promise<void> {
  const { died, ...through } = crashingPair({ home: world.consumer.api, there: world.provider.api }, moment);
  const kill = await start(through);
  await act();
  const once = eventually('the end', reached, { withinMs: 120_000 });
  await Promise.race([died, once]);
  kill();
  const stop = await start();
  await once;
  stop();
}

const { makeClaim, claim } = storageClaims(() => world);
const isBound = async (name: string): Promise<boolean> => (await claim(name))?.status?.phase === 'Bound';
const snapshot = (name: string) => world.consumer.api.get(volumeSnapshots, { namespace: 'shop', name });
const lentObjects = async (): Promise<readonly KubeObject[]> => [
  ...(await world.consumer.api.list(volumeSnapshotContents, { labelSelector: 'isthmus.dev/restores-claim' })),
  ...(await world.consumer.api.list(volumeSnapshots, { namespace: 'liqo-storage' })),
];
const lent = async (): Promise<number> => (await lentObjects()).length;
const thereNow = () => world.provider.api.list(volumeSnapshots, { namespace: 'shop-cons' });

for (const node of ['worker', 'vn1'] as const)
  test.each(moments)(
    `a snapshot of a claim of node ${node} is taken once, restored once and deleted whole, dying after %i writes`,
    async (moment) => {
      const { api } = world.consumer;
      const name = `s-${node}-${moment}`;
      await interrupted(
        moment,
        () =>
          api.create(volumeSnapshots, {
            apiVersion: 'snapshot.storage.k8s.io/v1',
            kind: 'VolumeSnapshot',
            metadata: { namespace: 'shop', name },
            spec: { source: { persistentVolumeClaimName: `db-${node}` } },
          }),
        async () => (await snapshot(name))?.status?.readyToUse === true,
      );
      expect(taken[node].data.size).toBe(1);
      expect(await thereNow()).toHaveLength(node === 'vn1' ? 1 : 0);
      const [handle] = taken[node].data.keys();
      const copy = `copy-${name}`;
      const dataSource = { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name };
      await interrupted(
        moment,
        () => makeClaim(copy, node, { dataSource }),
        async () =>
          (await isBound(copy)) && [...disks[node].copies.values()].includes(handle ?? '') && (await lent()) === 0,
      );
      expect([...disks[node].copies.values()]).toEqual([handle]);
      expect(taken[node].data.size).toBe(1);
      await interrupted(
        moment,
        () => api.delete(persistentVolumeClaims, { namespace: 'shop', name: copy }),
        async () => disks[node].copies.size === 0,
      );
      await interrupted(
        moment,
        () => api.delete(volumeSnapshots, { namespace: 'shop', name }),
        async () => !(await snapshot(name)) && (await thereNow()).length === 0,
      );
      expect(taken[node].data.size).toBe(0);
    },
    300_000,
  );

test.each(moments)(
  'a claim that vanishes while a snapshot is lent to it leaves nothing behind, dying after %i writes',
  async (moment) => {
    const { api } = world.consumer;
    const name = `gone-${moment}`;
    const stopAll = await start();
    await api.create(volumeSnapshots, {
      apiVersion: 'snapshot.storage.k8s.io/v1',
      kind: 'VolumeSnapshot',
      metadata: { namespace: 'shop', name },
      spec: { source: { persistentVolumeClaimName: 'db-worker' } },
    });
    await eventually('the snapshot', async () => (await snapshot(name))?.status?.readyToUse);
    stopAll();
    disks.worker.makes = false;
    const { died, ...through } = crashingPair({ home: api, there: world.provider.api }, moment);
    const kill = await start(through);
    await makeClaim(name, 'worker', {
      dataSource: { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name },
    });
    const isBegun = async () => (await lent()) === 2 || undefined;
    await Promise.race([died, eventually('the loan', isBegun)]);
    kill();
    await api.delete(persistentVolumeClaims, { namespace: 'shop', name });
    const stop = await start();
    await eventually('nothing is left', async () => {
      const reals = await api.list(persistentVolumeClaims, { namespace: 'liqo-storage' });
      const left = [...(await lentObjects()), ...reals];
      if (left.length === 1) return true;
      throw new Error(JSON.stringify(left));
    });
    expect(taken.worker.data.size).toBe(1);
    await api.delete(volumeSnapshots, { namespace: 'shop', name });
    await eventually('its end', async () => !(await snapshot(name)));
    stop();
    disks.worker.makes = true;
    expect(taken.worker.data.size).toBe(0);
  },
  300_000,
);

test('a VolumeSnapshot that was lent goes when its content is gone, whenever it was made, and one of a user in that namespace stays', async () => {
  const { api } = world.consumer;
  const make = (name: string, volumeSnapshotContentName: string) =>
    api.create(volumeSnapshots, {
      apiVersion: 'snapshot.storage.k8s.io/v1',
      kind: 'VolumeSnapshot',
      metadata: { namespace: 'liqo-storage', name },
      spec: { source: { volumeSnapshotContentName } },
    });
  const names = async () => (await lentObjects()).map(({ metadata }) => metadata.name);
  await make('early', 'isthmus-import-early');
  await make('own', 'content-of-a-user');
  const stop = await start();
  await eventually('the first goes', async () => !(await names()).includes('early'));
  await make('late', 'isthmus-import-late');
  await eventually('the second goes', async () => !(await names()).includes('late'));
  stop();
  expect(await names()).toEqual(['own']);
  await api.delete(volumeSnapshots, { namespace: 'liqo-storage', name: 'own' });
});
