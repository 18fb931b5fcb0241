/** VolumeSnapshots of guests at the provider, as the API server asks and kubectl shows: of what they are taken, how much fits, what is left of them. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Cluster } from '#kube/model/types.ts';
import { clusterRoles, namespaces, persistentVolumeClaims } from '#shared/domain/core-kinds.ts';
import { remoteRoles } from '#shared/domain/remote-roles.ts';
import { volumeSnapshotContents, volumeSnapshots } from '#shared/domain/snapshot-kinds.ts';
import { namespaceMaps } from '#shared/schema/liqo/namespace-map.ts';
import { quotas } from '#shared/schema/liqo/quota.ts';
import { eventually } from '#test/harness/eventually.ts';
import { inOrder } from '#test/harness/in-order.ts';
import {
  installSnapshotKinds,
  type PlayedSnapshots,
  playSnapshotController,
} from '#test/harness/snapshot-controller.ts';
import { provisionVolumes, type VolumeProvisioner } from '#test/harness/volume-provisioner.ts';
import { deps, offloadingApi, startWebhookCluster, until, type WebhookCluster } from '#test/harness/webhook-cluster.ts';
import { createQuotaUsageController } from '../quota/usage-controller.ts';

const stop = new AbortController();
let running: Promise<unknown>;

const as = ['--as=slice-1', '--as-group=cons', '--as-group=system:authenticated'];
const apps = 'apps-cons';
let under: WebhookCluster;
let cluster: Cluster;
let disk: VolumeProvisioner;
let taken: PlayedSnapshots;

const claim = (name: string, storage: string, spec: object = {}): object => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { namespace: apps, name },
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage } }, ...spec },
});
const home = { 'isthmus.dev/snapshot': 'apps/monday', 'isthmus.dev/snapshot-uid': 'u1' };
const snapshot = (name: string, spec: object = {}, metadata: object = {}): object => ({
  apiVersion: 'snapshot.storage.k8s.io/v1',
  kind: 'VolumeSnapshot',
  metadata: { namespace: apps, name, annotations: home, ...metadata },
  spec: { source: { persistentVolumeClaimName: 'data' }, ...spec },
});
const take = (...args: Parameters<typeof snapshot>): Promise<string> => under.create(snapshot(...args), ...as);
const found = (name: string) => cluster.api.get(volumeSnapshots, { namespace: apps, name });
const contentOf = async (name: string) => {
  const bound = (await found(name))?.status?.boundVolumeSnapshotContentName;
  return bound ? cluster.api.get(volumeSnapshotContents, { name: bound }) : undefined;
};
const guarded = (name: string) =>
  until(async () => {
    expect((await found(name))?.status?.readyToUse).toBe(true);
    const content = await contentOf(name);
    expect(content?.spec.deletionPolicy).toBe('Retain');
    return content?.metadata.name ?? '';
  });
const patch = (name: string, body: object): Promise<string> =>
  under.kubectl(['-n', apps, 'patch', 'volumesnapshot', name, '--type=merge', '-p', JSON.stringify(body), ...as]);
/** Without waiting, for which kubectl would list them. */
const remove = (name: string): Promise<string> =>
  under.kubectl(['-n', apps, 'delete', 'volumesnapshot', name, '--wait=false', ...as]);

// In this order: each test finds what the ones before it left.
inOrder('file');
beforeAll(async () => {
  under = await startWebhookCluster();
  cluster = under.cluster;
  for (const role of remoteRoles()) await cluster.api.create(clusterRoles, role);
  disk = await provisionVolumes(cluster);
  await installSnapshotKinds(cluster);
  taken = await playSnapshotController(cluster);
  disk.handleOf = taken.handleOf;
  running = createQuotaUsageController({ ...deps, cluster }).run(stop.signal);
  const labels = { 'liqo.io/replicated': 'true', 'liqo.io/originID': 'cons', 'liqo.io/remote-cluster-id': 'cons' };
  await cluster.api.create(quotas, {
    apiVersion: offloadingApi,
    kind: 'Quota',
    metadata: { namespace: 'liqo-tenant-cons', name: 'slice-1', labels: { 'liqo.io/remote-cluster-id': 'cons' } },
    spec: { user: 'slice-1', limitsEnforcement: 'None', resources: { cpu: '8', 'requests.storage': '10Gi' } },
  });
  await cluster.api.create(namespaceMaps, {
    apiVersion: offloadingApi,
    kind: 'NamespaceMap',
    metadata: { namespace: 'liqo-tenant-cons', name: 'here', labels },
    spec: { desiredMapping: { apps } },
  });
  await until(async () =>
    expect(await under.kubectl(['-n', apps, 'auth', 'can-i', 'create', 'volumesnapshot', ...as])).toBe('yes'),
  );
  await until(async () => expect(await under.create(claim('data', '2Gi'), ...as)).toMatch(/created|already exists/));
  await until(async () =>
    expect((await cluster.api.get(persistentVolumeClaims, { namespace: apps, name: 'data' }))?.status?.phase).toBe(
      'Bound',
    ),
  );
  // The ResourceQuota of the namespace counts a kind that is new to the cluster only a while later, and lets none in before.
  await eventually('the first snapshot', async () => /created|already exists/.test(await take('monday')), {
    withinMs: 300_000,
  });
}, 900_000);
afterAll(async () => {
  stop.abort();
  await running;
  await taken?.stop();
  await disk?.stop();
  await under?.stop();
});

test('a snapshot of a claim of its own is taken, marked with its consumer, and its content keeps the data', async () => {
  const name = await guarded('monday');
  const one = await found('monday');
  expect(one?.metadata).toMatchObject({
    labels: { 'isthmus.dev/guest': 'cons' },
    annotations: { 'isthmus.dev/counts-as': '{"size":"2Gi","storageClassName":"records"}' },
  });
  expect(one?.metadata.finalizers).toContain('isthmus.dev/guest-snapshot');
  const content = await cluster.api.get(volumeSnapshotContents, { name });
  expect(content?.metadata).toMatchObject({
    labels: { 'isthmus.dev/guest': 'cons' },
    annotations: {
      'isthmus.dev/kept-policy': 'Delete',
      'isthmus.dev/kept-home-claim': JSON.stringify({ namespace: 'apps', name: 'monday', uid: 'u1' }),
    },
  });
});

/** As the Quota of the consumer says, which `isthmus slice list` shows and the offered `maximumVolumeSize` is made of. */
const usedOfStorage = async (): Promise<unknown> =>
  (await cluster.api.get(quotas, { namespace: 'liqo-tenant-cons', name: 'slice-1' }))?.status?.used?.[
    'requests.storage'
  ];

test('the Quota of the consumer says what snapshots take of its storage', async () => {
  await until(async () => expect(await usedOfStorage()).toBe('4Gi'));
});

test('no other source, no class and no content are taken, and no right reaches the contents', async () => {
  const rehearse = (spec: object): Promise<string> => under.create(snapshot('lie', spec), '--dry-run=server', ...as);
  expect(await rehearse({ source: { persistentVolumeClaimName: 'absent' } })).toMatch(
    /spec.source.persistentVolumeClaimName is "absent": cons has no such claim in this namespace.*sandbox_refused/,
  );
  const bound = (await contentOf('monday'))?.metadata.name;
  expect(await rehearse({ source: { volumeSnapshotContentName: bound } })).toMatch(
    /spec.source.volumeSnapshotContentName is .*accepted is persistentVolumeClaimName.*sandbox_refused/,
  );
  expect(await rehearse({ volumeSnapshotClassName: 'records' })).toMatch(/no such classes are offered/);
  for (const [verb, what] of [
    ['list', 'volumesnapshots'],
    ['update', 'volumesnapshots'],
    ['get', 'volumesnapshotcontents'],
    ['create', 'volumesnapshotcontents'],
    ['get', 'volumesnapshotclasses'],
  ] as const)
    expect(await under.kubectl(['-n', apps, 'auth', 'can-i', verb, `${what}.snapshot.storage.k8s.io`, ...as])).toMatch(
      /^(Warning.*\n)?no$/m,
    );
  const status = ['patch', 'volumesnapshots.snapshot.storage.k8s.io', '--subresource=status'];
  expect(await under.kubectl(['-n', apps, 'auth', 'can-i', ...status, ...as])).toBe('no');
});

test('a consumer takes no mark off, and changes neither source nor what it counts as', async () => {
  expect(await patch('monday', { metadata: { finalizers: null } })).toMatch(/metadata.finalizers lacks/);
  expect(await patch('monday', { metadata: { labels: null } })).toMatch(/isthmus.dev\/guest\] is immutable/);
  expect(await patch('monday', { metadata: { annotations: { 'isthmus.dev/counts-as': '{"size":"0"}' } } })).toMatch(
    /counts-as\] is immutable/,
  );
  expect(await patch('monday', { metadata: { annotations: { 'vendor.example.com/x': 'y' } } })).toMatch(
    /controllers of the provider obey it/,
  );
});

test('a snapshot counts as its volume, for claims and for other snapshots', async () => {
  expect(await under.create(claim('large', '7Gi'), '--dry-run=server', ...as)).toMatch(
    /requests.storage: asked 7Gi, used 4Gi of 10Gi.*quota_exceeded/,
  );
  const answers = await Promise.all(Array.from({ length: 6 }, (_, i) => take(`race-${i}`)));
  expect(answers.filter((answer) => answer.includes('created'))).toHaveLength(3);
  expect(answers.filter((answer) => answer.includes('quota_exceeded'))).toHaveLength(3);
  for (const [i, answer] of answers.entries()) {
    if (!answer.includes('created')) continue;
    await guarded(`race-${i}`);
    await patch(`race-${i}`, { metadata: { annotations: { 'isthmus.dev/data': 'delete' } } });
    expect(await remove(`race-${i}`)).toMatch(/deleted/);
    await until(async () => expect(await found(`race-${i}`)).toBeUndefined());
  }
  expect(taken.data.size).toBe(1);
  await until(async () => expect(await usedOfStorage()).toBe('4Gi'));
});

test('a claim begins as a snapshot of its own, and as no other', async () => {
  const source = (name: string) => ({
    dataSource: { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name },
  });
  expect(await under.create(claim('copy', '1Gi', source('absent')), '--dry-run=server', ...as)).toMatch(
    /cons has no such VolumeSnapshot in namespace apps-cons.*sandbox_refused/,
  );
  // Made by an administrator of the provider: of this namespace, but no guest's.
  await cluster.api.create(volumeSnapshots, snapshot('theirs') as never);
  await until(async () => expect((await found('theirs'))?.status?.readyToUse).toBe(true));
  expect(await under.create(claim('copy', '2Gi', source('theirs')), '--dry-run=server', ...as)).toMatch(
    /cons has no such VolumeSnapshot/,
  );
  await cluster.api.delete(volumeSnapshots, { namespace: apps, name: 'theirs' });
  // What was admitted counts for ten seconds, also when it has ended by then.
  await until(async () =>
    expect(await under.create(claim('copy', '2Gi', source('monday')), ...as)).toMatch(/created|already exists/),
  );
  const volume = await until(async () => {
    const made = await cluster.api.get(persistentVolumeClaims, { namespace: apps, name: 'copy' });
    expect(made?.status?.phase).toBe('Bound');
    return made?.spec?.volumeName ?? '';
  });
  expect(disk.copies.get(volume)).toBe((await contentOf('monday'))?.status?.snapshotHandle);
});

test('without an order the data of a snapshot stays as its content, which counts still', async () => {
  await until(async () => expect(await take('kept')).toMatch(/created|already exists/));
  const name = await guarded('kept');
  const size = taken.data.size;
  expect(await remove('kept')).toMatch(/deleted/);
  await until(async () => expect(await found('kept')).toBeUndefined());
  const content = await cluster.api.get(volumeSnapshotContents, { name });
  expect(content?.metadata.labels).toEqual({ 'isthmus.dev/kept-for': 'cons' });
  expect(content?.metadata.deletionTimestamp).toBeUndefined();
  expect(taken.data.size).toBe(size);
  await until(async () =>
    expect(await under.create(claim('large', '3Gi'), '--dry-run=server', ...as)).toMatch(/asked 3Gi, used 8Gi of 10Gi/),
  );
});

test('the end of the mapping leaves the data of every snapshot, and no namespace', async () => {
  const size = taken.data.size;
  await cluster.api.delete(namespaceMaps, { namespace: 'liqo-tenant-cons', name: 'here' });
  await until(async () => expect(await cluster.api.get(namespaces, { name: apps })).toBeUndefined());
  expect(taken.data.size).toBe(size);
  const kept = await cluster.api.list(volumeSnapshotContents, { labelSelector: 'isthmus.dev/kept-for=cons' });
  expect(kept).toHaveLength(2);
  for (const { spec } of kept) expect(spec.deletionPolicy).toBe('Retain');
  // Two claims, and a snapshot that has ended with its namespace beside the one that had ended before, of 2Gi each.
  await until(async () => expect(await usedOfStorage()).toBe('8Gi'));
});
