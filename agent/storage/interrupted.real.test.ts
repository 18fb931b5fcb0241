/** The controllers of volumes die at every single write, in turn: after their restart the end is the same as without. */
import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { KubeApi } from '#kube/model/types.ts';
import { persistentVolumeClaims, persistentVolumes } from '#shared/domain/core-kinds.ts';
import { casesOf } from '#test/harness/cases.ts';
import { crashingPair } from '#test/harness/crashing-client.ts';
import { eventually } from '#test/harness/eventually.ts';
import { createVirtualNode, type OffloadingClusters } from '#test/harness/offloading-clusters.ts';
import { selectedNode, startStorageAgent } from '#test/harness/storage-claims.ts';
import { addVirtualNode, startStorageClusters } from '#test/harness/storage-clusters.ts';
import type { VolumeProvisioner } from '#test/harness/volume-provisioner.ts';

const end = new AbortController();
const moments = casesOf([0, 1, 2, 3, 4, 5, 6, 7], [1, 2, 3]);
let world: OffloadingClusters;
let disks: readonly VolumeProvisioner[] = [];

beforeAll(async () => {
  const started = await startStorageClusters();
  world = started.world;
  disks = [started.here, started.there];
  await addVirtualNode(world);
  await createVirtualNode(world, 'vn1', { storageClasses: [{ storageClassName: 'fast', default: true }] });
}, 900_000);
afterAll(async () => {
  await Promise.all(disks.map((disk) => disk.stop()));
  end.abort();
  await world?.stop();
});

/** The writes of both sides count together. The returned function ends all without waiting for passes that hang. */
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
  const once = eventually('the end', reached, { withinMs: 60_000 });
  await Promise.race([died, once]);
  kill();
  const stop = await start();
  await once;
  stop();
}

for (const node of ['worker', 'vn1'])
  test.each(moments)(
    `a claim for node ${node} is bound once and taken down whole, dying after %i writes`,
    async (moment) => {
      const { api } = world.consumer;
      const name = `data-${node}-${moment}`;
      const ref = { namespace: 'shop', name };
      const reals = async () => [
        ...(await api.list(persistentVolumeClaims, { namespace: 'liqo-storage' })),
        ...(await world.provider.api.list(persistentVolumeClaims, { namespace: 'shop-cons' })),
      ];
      await interrupted(
        moment,
        () =>
          api.create(persistentVolumeClaims, {
            apiVersion: 'v1',
            kind: 'PersistentVolumeClaim',
            metadata: { ...ref, annotations: { [selectedNode]: node } },
            spec: {
              accessModes: ['ReadWriteOnce'],
              storageClassName: 'liqo',
              resources: { requests: { storage: '1Gi' } },
            },
          }),
        async () => {
          const found = await reals();
          const isMarked = found[0]?.metadata.annotations?.['isthmus.dev/unpublished'] !== undefined;
          return (
            found.length === 1 && !isMarked && (await api.get(persistentVolumeClaims, ref))?.status?.phase === 'Bound'
          );
        },
      );
      const { uid } = (await api.get(persistentVolumeClaims, ref))?.metadata ?? {};
      await interrupted(
        moment,
        () => api.delete(persistentVolumeClaims, ref),
        async () => (await reals()).length === 0 && !(await api.get(persistentVolumes, { name: `pvc-${uid}` })),
      );
    },
  );

test.each(moments)(
  'a claim that vanishes while its volume is made leaves nothing behind, dying after %i writes',
  async (moment) => {
    const { api } = world.consumer;
    const ref = { namespace: 'shop', name: `gone-${moment}` };
    const all = async () => [
      ...(await world.provider.api.list(persistentVolumeClaims, { namespace: 'shop-cons' })),
      ...(await api.list(persistentVolumes)).filter(({ metadata }) => metadata.name.startsWith('pvc-')),
    ];
    const { died, ...through } = crashingPair({ home: world.consumer.api, there: world.provider.api }, moment);
    const kill = await start(through);
    await api.create(persistentVolumeClaims, {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { ...ref, annotations: { [selectedNode]: 'vn1' } },
      spec: { accessModes: ['ReadWriteOnce'], storageClassName: 'liqo', resources: { requests: { storage: '1Gi' } } },
    });
    const isBound = async () => (await api.get(persistentVolumeClaims, ref))?.status?.phase === 'Bound';
    await Promise.race([died, eventually('bound', isBound)]);
    kill();
    await api.delete(persistentVolumeClaims, ref);
    const stop = await start();
    await eventually('nothing is left', async () => (await all()).length === 0, { withinMs: 60_000 });
    stop();
    expect(await all()).toEqual([]);
  },
);

const sized = (storage: string) => ({ resources: { requests: { storage } } });

test.each(moments)(
  'a claim that grows at its provider says what the claim there says, and awaits nothing in the end, dying after %i writes',
  async (moment) => {
    const { api } = world.consumer;
    const there = world.provider.api;
    const disk = disks[1] as VolumeProvisioner;
    const name = `grows-${moment}`;
    const ref = { namespace: 'shop', name };
    const at = { namespace: 'shop-cons', name };
    const ask = (storage: string) => api.mergePatch(persistentVolumeClaims, ref, { spec: sized(storage) });
    const sayThere = (status: object) =>
      there.mergePatch(persistentVolumeClaims, at, { status }, { subresource: 'status' });
    const now = async () => {
      const { spec, status = {} } = (await api.get(persistentVolumeClaims, ref)) ?? {};
      const volume = await api.get(persistentVolumes, { name: spec?.volumeName ?? '' });
      // No kubelet says that the virtual node is Ready.
      const said = status.conditions?.filter(({ type }) => type !== 'isthmus.dev/Reachable') ?? [];
      return {
        volume: volume?.spec?.capacity?.storage,
        claim: status.capacity?.storage,
        allocated: status.allocatedResources?.storage,
        turn: status.allocatedResourceStatuses?.storage,
        says: said.map(({ type }) => type).join(),
      };
    };
    const is = (wanted: Awaited<ReturnType<typeof now>>) => async () => isDeepStrictEqual(await now(), wanted);
    const healthy = (size: string) => is({ volume: size, claim: size, allocated: size, turn: undefined, says: '' });
    const begin = await start();
    await api.create(persistentVolumeClaims, {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { ...ref, annotations: { [selectedNode]: 'vn1' } },
      spec: { accessModes: ['ReadWriteOnce'], storageClassName: 'liqo', ...sized('1Gi') },
    });
    await eventually('bound', async () => (await now()).claim === '1Gi');
    begin();

    disk.isMounted = false;
    const [says, turn] = ['FileSystemResizePending', 'NodeResizePending'];
    await interrupted(moment, () => ask('2Gi'), is({ volume: '2Gi', claim: '1Gi', allocated: '2Gi', turn, says }));
    disk.isMounted = true;
    const done = { capacity: { storage: '2Gi' }, allocatedResourceStatuses: null, conditions: [] };
    await interrupted(moment, () => sayThere(done), healthy('2Gi'));

    disk.unable = '9Gi';
    const asksThere = async () => (await there.get(persistentVolumeClaims, at))?.spec?.resources?.requests?.storage;
    await interrupted(
      moment,
      () => ask('9Gi'),
      async () => (await asksThere()) === '9Gi',
    );
    const fails = { type: 'ControllerResizeError', status: 'True', lastTransitionTime: null };
    const infeasible = {
      allocatedResources: { storage: '9Gi' },
      allocatedResourceStatuses: { storage: 'ControllerResizeInfeasible' },
      conditions: [fails],
    };
    await interrupted(
      moment,
      () => sayThere(infeasible),
      is({ volume: '2Gi', claim: '2Gi', allocated: '9Gi', turn: 'ControllerResizeInfeasible', says: fails.type }),
    );
    await interrupted(moment, () => ask('4Gi'), healthy('4Gi'));
    expect(await asksThere()).toBe('4Gi');

    const stop = await start();
    await api.delete(persistentVolumeClaims, ref);
    const left = async () => await there.list(persistentVolumeClaims, { namespace: 'shop-cons' });
    await eventually('its real claim goes', async () => (await left()).length === 0, { withinMs: 60_000 });
    stop();
  },
);
