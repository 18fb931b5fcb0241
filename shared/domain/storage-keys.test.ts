/** The marks that join a claim at the provider with the claim it is for. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type PersistentVolume, persistentVolumes, type StorageClass, storageClasses } from './core-kinds.ts';
import { apiVersionOf } from './kube-object.ts';
import {
  claimAnnotations,
  homeClaimOf,
  isVirtualProvisioner,
  meantClaimOf,
  remoteClaimOf,
  remoteVolumeDriver,
  storageAnnotation,
  storageData,
  storageNamespace,
  virtualProvisioner,
  volumeHandle,
} from './storage-keys.ts';

const part = fc.stringMatching(/^[a-z0-9]([-a-z0-9.]{0,20}[a-z0-9])?$/);

describe('the marks of a claim at the provider', () => {
  test('name the claim of the consumer that it is for, by any name', () => {
    fc.assert(
      fc.property(
        part,
        part,
        fc.uuid(),
        fc.constantFrom('Delete' as const, 'Retain' as const),
        (ns, name, uid, policy) => {
          const home = { namespace: ns, name, uid };
          expect(homeClaimOf(claimAnnotations(home, policy))).toEqual(home);
        },
      ),
    );
  });

  test.each([
    undefined,
    {},
    { 'isthmus.dev/claim': 'shop/data' },
    { 'isthmus.dev/claim': 'shop', 'isthmus.dev/claim-uid': 'u' },
  ])('are not read out of %j', (annotations) => expect(homeClaimOf(annotations)).toBeUndefined());

  test('name the claim that another one stands for while its volume moves', () => {
    const marks = claimAnnotations({ namespace: 'shop', name: 'move-1', uid: 'u' }, 'Delete');
    expect(meantClaimOf({ ...marks, 'isthmus.dev/stands-for': 'data' })).toEqual({
      namespace: 'shop',
      name: 'data',
      uid: 'u',
    });
    expect(meantClaimOf(marks)).toEqual(homeClaimOf(marks));
    expect(meantClaimOf({ ...marks, 'isthmus.dev/stands-for': '' })).toEqual(homeClaimOf(marks));
    expect(meantClaimOf({})).toBeUndefined();
  });
});

test('a volume handle names provider, namespace and claim, and nothing else is one', () => {
  fc.assert(
    fc.property(part, part, part, (provider, namespace, name) => {
      const at = { provider, namespace, name };
      expect(remoteClaimOf(volumeHandle(at))).toEqual(at);
    }),
  );
  for (const other of ['', 'vol-1', 'a/b', 'a//c', 'a/b/c/d']) expect(remoteClaimOf(other)).toBeUndefined();
});

test('the names of the storage fabric are those that Liqo and its manifests use', () => {
  expect([virtualProvisioner, storageNamespace]).toEqual(['liqo.io/storage', 'liqo-storage']);
  for (const [name, isOurs] of [
    ['liqo.io/storage', true],
    ['storage.isthmus.dev', true],
    ['disk.example.com', false],
    [undefined, false],
  ] as const)
    expect(isVirtualProvisioner(name)).toBe(isOurs);
  expect([remoteVolumeDriver, storageData.delete]).toEqual(['storage.isthmus.dev', 'delete']);
});

test('volumes and classes belong to no namespace', () => {
  const volume: Pick<PersistentVolume, 'apiVersion'> = { apiVersion: apiVersionOf(persistentVolumes) };
  const offered: Pick<StorageClass, 'apiVersion'> = { apiVersion: apiVersionOf(storageClasses) };
  expect([volume.apiVersion, offered.apiVersion]).toEqual(['v1', 'storage.k8s.io/v1']);
  expect([persistentVolumes.namespaced, storageClasses.namespaced]).toEqual([false, false]);
  expect(storageAnnotation.remoteStorageClass).toBe('liqo.io/remote-storage-class');
});
