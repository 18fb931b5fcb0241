import { expect, test } from 'vitest';
import type { KubeClient } from '#cli/cluster/open.ts';
import { persistentVolumeClaims, persistentVolumes } from '#shared/domain/core-kinds.ts';
import type { ResourceType } from '#shared/domain/kube-object.ts';
import { volumeSnapshotContents, volumeSnapshots } from '#shared/domain/snapshot-kinds.ts';
import { AppError } from '#shared/errors/app-error.ts';
import {
  departureNotice,
  keptNotice,
  keptSnapshotsNotice,
  noticeOr,
  peeringNotice,
  remoteVolumes,
} from './kept-data.ts';

const volume = (claim: string, more: object, by = 'liqo.io/storage') => ({
  metadata: { name: `pvc-${claim}`, annotations: { 'pv.kubernetes.io/provisioned-by': by } },
  spec: { claimRef: { namespace: 'shop', name: claim }, capacity: { storage: '1Gi' }, ...more },
});
const at = (provider: string) => ({
  csi: { driver: 'storage.isthmus.dev', volumeHandle: `${provider}/shop-rome/data` },
});
const guest = (consumer: string, home?: string) => ({
  metadata: {
    namespace: 'shop-rome',
    name: 'data',
    labels: { 'isthmus.dev/guest': consumer },
    annotations: home && { 'isthmus.dev/claim': home, 'isthmus.dev/claim-uid': 'u' },
  },
  status: { capacity: { storage: '2Gi' } },
});
type Labelled = { readonly metadata: { readonly labels: object } };
function clusterOf(
  volumes: readonly object[],
  claims: readonly Labelled[],
  contents: readonly object[] = [],
  snapshots: readonly Labelled[] = [],
): KubeClient {
  const list = async (type: ResourceType, selector = '') => {
    if (type.plural === persistentVolumes.plural) return volumes;
    if (type.plural === volumeSnapshotContents.plural) return contents;
    const found = { [persistentVolumeClaims.plural]: claims, [volumeSnapshots.plural]: snapshots }[type.plural] ?? [];
    const [key = '', value] = selector.split('=');
    const labelled = found.map((claim) => ({ claim, label: (claim.metadata.labels as Record<string, string>)[key] }));
    return labelled.filter(({ label }) => label && (!value || label === value)).map(({ claim }) => claim);
  };
  return { list } as unknown as KubeClient;
}

const rome = clusterOf(
  [volume('a', at('milan')), volume('b', at('genoa')), volume('c', {}), volume('d', {}, 'disk.example.com')],
  [guest('bonn', 'web/files'), guest('ulm')],
);
const both = { consumer: 'rome', provider: 'milan' };

test('the claims of a namespace whose data stays at providers are named with their size and place', async () => {
  expect(keptNotice(await remoteVolumes(rome, ({ claim }) => claim === 'shop/b'))).toBe(
    'the providers keep the data of these claims, each as a RetainedVolume (`isthmus volume list` there):\n  shop/b, 1Gi, at genoa\n',
  );
  expect(keptNotice([])).toBe('');
});

test('the claims of a peering that ends are named by the cluster of either side', async () => {
  expect(await peeringNotice(rome, 'rome', both)).toMatch(/:\n {2}shop\/a, 1Gi, at milan\n$/);
  const milan = clusterOf([], [guest('rome', 'shop/a'), guest('ulm', 'shop/x')]);
  expect(await peeringNotice(milan, 'milan', both)).toMatch(/^milan keeps .*:\n {2}shop\/a of rome, 2Gi\n$/);
  expect(await peeringNotice(clusterOf([], []), 'milan', both)).toBe('');
});

test('a cluster that Isthmus is taken out of names what its providers keep, its own volumes, and claims of guests', async () => {
  expect((await departureNotice(rome)).split('\n').filter((line) => line.startsWith('  '))).toEqual([
    '  shop/a, 1Gi, at milan',
    '  shop/b, 1Gi, at genoa',
    '  shop/c, 1Gi',
    '  web/files of bonn, 2Gi',
    '  shop-rome/data of ulm, 2Gi',
  ]);
  expect(await departureNotice(clusterOf([], []))).toBe('');
});

test('snapshots are named as well: those at providers here, those of guests there', async () => {
  const content = (name: string, handle: string, driver = 'storage.isthmus.dev') => ({
    spec: { driver, source: { volumeHandle: handle }, volumeSnapshotRef: { namespace: 'shop', name } },
  });
  const contents = [content('a', 'milan/shop-rome/x'), content('b', 'genoa/shop-rome/x'), content('c', 'v', 'disk')];
  const here = clusterOf([], [], contents);
  expect(await keptSnapshotsNotice(here, ({ snapshot }) => snapshot === 'shop/b')).toBe(
    'the providers keep the data of these VolumeSnapshots, each as a VolumeSnapshotContent (`kubectl get volumesnapshotcontents -l isthmus.dev/kept-for` there):\n  shop/b, at genoa\n',
  );
  expect(await peeringNotice(here, 'rome', both)).toMatch(/VolumeSnapshots.*:\n {2}shop\/a, at milan\n$/);
  const home = { 'isthmus.dev/snapshot': 'shop/monday', 'isthmus.dev/snapshot-uid': 'u' };
  const snapshot = (labels: object, annotations: object = {}) => ({
    metadata: { namespace: 'shop-rome', name: 's', labels, annotations },
  });
  const guests = [snapshot({ 'isthmus.dev/guest': 'rome' }, home), snapshot({ 'isthmus.dev/guest': 'ulm' })];
  const milan = clusterOf([], [], [], guests);
  expect(await peeringNotice(milan, 'milan', both)).toMatch(/^milan keeps .*:\n {2}shop\/monday of rome\n$/);
  expect((await departureNotice(milan)).split('\n').filter((line) => line.startsWith('  '))).toEqual([
    '  shop/monday of rome',
    '  shop-rome/s of ulm',
  ]);
});

test('a notice that the cluster does not give stops nothing, and a mistake of the user stops the command', async () => {
  const refusing = (error: Error) => noticeOr(() => Promise.reject(error), 'which claims have data there');
  expect(await refusing(new AppError('kube_forbidden', 'no right to list persistentvolumes'))).toBe(
    'which claims have data there could not be read (no right to list persistentvolumes); going on: no data is deleted with it\n',
  );
  await expect(refusing(new AppError('invalid_input', 'the kubeconfig is of another cluster'))).rejects.toThrow(
    'another',
  );
  expect(await noticeOr(async () => 'shop/a', 'which')).toBe('shop/a');
});
