/** What the claims of an offloaded pod are called at its provider. */
import { describe, expect, test } from 'vitest';
import type { PersistentVolume, PersistentVolumeClaim } from '#shared/domain/core-kinds.ts';
import type { Pod } from '#shared/domain/kube-object.ts';
import { claimsOf, remoteName, withRemoteNames } from './remote-volumes.ts';

const at = { provider: 'prov', namespace: 'shop-cons' };
const claim = (
  spec: object = { volumeName: 'pvc-u', storageClassName: 'liqo' },
  annotations: Record<string, string> = {},
) => ({ metadata: { name: 'data', annotations }, spec }) as unknown as PersistentVolumeClaim;
const volume = (source: object, provisioner = 'liqo.io/storage') =>
  ({
    metadata: { name: 'pvc-u', annotations: { 'pv.kubernetes.io/provisioned-by': provisioner } },
    spec: source,
  }) as unknown as PersistentVolume;
const handle = (volumeHandle: string) => volume({ csi: { driver: 'storage.isthmus.dev', volumeHandle } });

describe('a claim', () => {
  test('has the name that its volume says, or its own when another component keeps it there', () => {
    expect(remoteName('data', claim(), handle('prov/shop-cons/data-12345678'), at)).toEqual({ name: 'data-12345678' });
    expect(remoteName('data', claim({}, { 'isthmus.dev/external-claim': 'true' }), undefined, at)).toEqual({
      name: 'data',
    });
    const source = { csi: { driver: 'storage.isthmus.dev', volumeHandle: 'prov/shop-cons/data' } };
    expect(remoteName('data', claim(), volume(source, 'storage.isthmus.dev'), at)).toEqual({ name: 'data' });
  });

  test.each([
    { of: undefined, with: undefined, says: /data does not exist/ },
    { of: claim({}), with: undefined, says: /has no volume yet/ },
    { of: claim(), with: volume({ hostPath: {} }), says: /is in this cluster, not at cluster prov/ },
    { of: claim(), with: handle('other/shop-cons/data'), says: /is at cluster other, not at cluster prov/ },
    {
      of: claim(),
      with: handle('prov/older/data'),
      says: /namespace older of cluster prov.*to run in namespace shop-cons/,
    },
    {
      of: claim({ volumeName: 'v', storageClassName: 'disk' }),
      with: volume({ hostPath: {} }, 'disk.example.com'),
      says: /StorageClass disk, whose volumes are in this cluster only.*isthmus.dev\/external-claim=true/,
    },
  ])('keeps its pod waiting, and says why: $says', ({ of, with: has, says }) => {
    expect(remoteName('data', of, has, at)).toEqual({ missing: expect.stringMatching(says) });
  });
});

test('generic ephemeral volumes become the claim that Kubernetes made for them', () => {
  const pod = {
    metadata: { name: 'app' },
    spec: {
      containers: [],
      volumes: [
        { name: 'data', persistentVolumeClaim: { claimName: 'data', readOnly: true } },
        { name: 'scratch', ephemeral: { volumeClaimTemplate: { spec: {} } } },
        { name: 'tmp', emptyDir: {} },
      ],
    },
  } as unknown as Pod;
  expect(claimsOf(pod)).toEqual([
    { volume: 'data', claim: 'data' },
    { volume: 'scratch', claim: 'app-scratch' },
  ]);
  const names = new Map([
    ['data', 'data-1'],
    ['scratch', 'app-scratch'],
  ]);
  expect(withRemoteNames(pod.spec?.volumes ?? [], names)).toEqual([
    { name: 'data', persistentVolumeClaim: { claimName: 'data-1', readOnly: true } },
    { name: 'scratch', persistentVolumeClaim: { claimName: 'app-scratch' } },
    { name: 'tmp', emptyDir: {} },
  ]);
});
