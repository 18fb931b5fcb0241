/** Which class a cluster gets. */
import { expect, test } from 'vitest';
import type { KubeClient } from '#cli/cluster/open.ts';
import type { StorageClass } from '#shared/domain/core-kinds.ts';
import type { InstallFlags } from './install-flags.ts';
import { makeRoomForClass, settleStorage } from './settle-storage.ts';
import { capacityClass, storageClass } from './storage-manifests.ts';

const disk = { metadata: { name: 'disk' }, provisioner: 'disk.example.com' } as StorageClass;
const ofShared = { className: 'shared', capacityClassName: 'roomy', isDefault: true, localClass: 'disk' };
const shared = storageClass(ofShared);
const roomy = capacityClass(ofShared);
const settle = (classes: StorageClass[], flags: Partial<InstallFlags> = {}) =>
  settleStorage({ list: async () => classes } as unknown as KubeClient, { storage: true, ...flags } as InstallFlags);

test('a cluster gets classes liqo and isthmus, what is installed stays, and what is said counts', async () => {
  expect(await settle([disk])).toEqual({ className: 'liqo', capacityClassName: 'isthmus', isDefault: false });
  expect(await settle([disk, shared])).toEqual({ ...ofShared, capacityClassName: 'isthmus' });
  expect(await settle([disk, shared, roomy])).toEqual(ofShared);
  const flags = {
    storageClass: 'other',
    capacityStorageClass: 'wide',
    defaultStorageClass: true,
    localStorageClass: 'disk',
  };
  const said = { className: 'other', capacityClassName: 'wide', isDefault: true, localClass: 'disk' };
  expect(await settle([disk, shared, roomy], flags)).toEqual(said);
  expect(await settle([disk], { storage: false })).toBeUndefined();
});

const aware = { metadata: { name: 'aware' }, provisioner: 'storage.isthmus.dev' } as StorageClass;
test.each([
  { flags: { storageClass: 'disk' }, says: /StorageClass disk is there and its provisioner is disk.example.com/ },
  {
    flags: { storageClass: 'aware' },
    says: /StorageClass aware is there and its provisioner is storage.isthmus.dev/,
  },
  {
    flags: { capacityStorageClass: 'disk' },
    says: /StorageClass disk is there and its provisioner is disk.example.com/,
  },
  {
    flags: { storageClass: 'one', capacityStorageClass: 'one' },
    says: /StorageClass one cannot be both classes of Isthmus/,
  },
  { flags: { localStorageClass: 'aware' }, says: /the cluster has no StorageClass aware/ },
  { flags: { localStorageClass: 'gone' }, says: /the cluster has no StorageClass gone/ },
])('what cannot be is refused by name: $flags', async ({ flags, says }) => {
  await expect(settle([disk, aware], flags)).rejects.toThrow(says);
});

test.each([
  { localClass: 'disk', removed: [] },
  { localClass: 'fast', removed: ['shared', 'roomy'] },
])('classes go before they are made with other parameters, and only then', async ({ localClass, removed }) => {
  const gone: string[] = [];
  const kube = {
    get: async (_: unknown, { name }: { name: string }) =>
      [shared, roomy].find(({ metadata }) => metadata.name === name),
    delete: async (_: unknown, { name }: { name: string }) => void gone.push(name),
  } as unknown as KubeClient;
  await makeRoomForClass(kube, { ...ofShared, localClass });
  expect(gone).toEqual(removed);
});
