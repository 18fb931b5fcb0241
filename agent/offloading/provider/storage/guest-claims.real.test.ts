/** Claims of guests at the provider, as the API server asks and kubectl shows: what they may name, how much fits, what is left of them. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Cluster } from '#kube/model/types.ts';
import { clusterRoles, namespaces, persistentVolumeClaims, persistentVolumes } from '#shared/domain/core-kinds.ts';
import { remoteRoles } from '#shared/domain/remote-roles.ts';
import { retainedVolumes } from '#shared/schema/isthmus/retained-volume.ts';
import { namespaceMaps } from '#shared/schema/liqo/namespace-map.ts';
import { quotas } from '#shared/schema/liqo/quota.ts';
import { inOrder } from '#test/harness/in-order.ts';
import { provisionVolumes, type VolumeProvisioner } from '#test/harness/volume-provisioner.ts';
import { deps, offloadingApi, startWebhookCluster, until, type WebhookCluster } from '#test/harness/webhook-cluster.ts';
import { createQuotaUsageController } from '../quota/usage-controller.ts';

const as = ['--as=slice-1', '--as-group=cons', '--as-group=system:authenticated'];
const apps = 'apps-cons';
let under: WebhookCluster;
let cluster: Cluster;
let disk: VolumeProvisioner;
const stop = new AbortController();
let running: Promise<unknown>;

const claim = (name: string, storage: string, spec: object = {}, metadata: object = {}): object => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { namespace: apps, name, ...metadata },
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage } }, ...spec },
});
const make = (...args: Parameters<typeof claim>): Promise<string> => under.create(claim(...args), ...as);
const grow = (name: string, storage: string): Promise<string> => {
  const patch = JSON.stringify({ spec: { resources: { requests: { storage } } } });
  return under.kubectl(['-n', apps, 'patch', 'pvc', name, '-p', patch, ...as]);
};
const bound = (name: string): Promise<string> =>
  until(async () => {
    const found = await cluster.api.get(persistentVolumeClaims, { namespace: apps, name });
    expect(found?.status?.phase).toBe('Bound');
    return found?.spec?.volumeName ?? '';
  });
const remove = (name: string): Promise<string> => under.kubectl(['-n', apps, 'delete', 'pvc', name, ...as]);
const record = (name: string) => cluster.api.get(retainedVolumes, { name });

// In this order: each test finds what the ones before it left.
inOrder('file');
beforeAll(async () => {
  under = await startWebhookCluster();
  cluster = under.cluster;
  for (const role of remoteRoles()) await cluster.api.create(clusterRoles, role);
  disk = await provisionVolumes(cluster);
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
    expect(await under.kubectl(['-n', apps, 'auth', 'can-i', 'create', 'pvc', ...as])).toBe('yes'),
  );
}, 900_000);
afterAll(async () => {
  stop.abort();
  await running;
  await disk?.stop();
  await under?.stop();
});

test('a claim of the default class is taken, marked with its consumer, and bound', async () => {
  await until(async () => expect(await make('data', '4Gi')).toMatch(/created|already exists/));
  await bound('data');
  const found = await cluster.api.get(persistentVolumeClaims, { namespace: apps, name: 'data' });
  expect(found?.metadata.labels?.['isthmus.dev/guest']).toBe('cons');
  expect(found?.metadata.finalizers).toContain('isthmus.dev/guest-claim');
});

test('a class that is not offered, a volume by name and a selector are refused by field', async () => {
  expect(await make('gold', '1Gi', { storageClassName: 'gold' })).toMatch(
    /accepted are records.*storage_class_not_offered/,
  );
  expect(await make('none', '1Gi', { storageClassName: '' })).toMatch(/storage_class_not_offered/);
  expect(await make('taken', '1Gi', { volumeName: 'pv-of-another' })).toMatch(/spec.volumeName is "pv-of-another"/);
  expect(await make('chosen', '1Gi', { selector: { matchLabels: { a: 'b' } } })).toMatch(/spec.selector/);
});

test('a copy of a bound claim of its own is taken and counts, and no other data source', async () => {
  const rehearse = (storage: string, spec: object): Promise<string> =>
    under.create(claim('copy', storage, spec), '--dry-run=server', ...as);
  const source = (name: string, more: object = {}) => ({
    dataSource: { kind: 'PersistentVolumeClaim', name, ...more },
  });
  expect(await rehearse('4Gi', source('data'))).toMatch(/created/);
  expect(await rehearse('7Gi', source('data'))).toMatch(/asked 7Gi, used 4Gi of 10Gi.*quota_exceeded/);
  expect(await rehearse('4Gi', source('absent'))).toMatch(
    /cons has no such claim in namespace apps-cons.*sandbox_refused/,
  );
  const snapshot = { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot' };
  expect(await rehearse('4Gi', source('s', snapshot))).toMatch(
    /spec.dataSource.name is "s": cons has no such VolumeSnapshot.*sandbox_refused/,
  );
});

test('a consumer takes neither the mark nor the finalizer off', async () => {
  const patch = (body: object) =>
    under.kubectl(['-n', apps, 'patch', 'pvc', 'data', '--type=merge', '-p', JSON.stringify(body), ...as]);
  await patch({ metadata: { finalizers: null, labels: null } });
  const found = await cluster.api.get(persistentVolumeClaims, { namespace: apps, name: 'data' });
  expect(found?.metadata.labels?.['isthmus.dev/guest']).toBe('cons');
  expect(found?.metadata.finalizers).toContain('isthmus.dev/guest-claim');
});

test('what does not fit is refused with used and limit, at creation and at growth', async () => {
  expect(await make('large', '7Gi')).toMatch(/requests.storage: asked 7Gi, used 4Gi of 10Gi.*quota_exceeded/);
  expect(await grow('data', '11Gi')).toMatch(/requests.storage: asked 11Gi, used 0 of 10Gi.*quota_exceeded/);
  expect(await grow('data', '5Gi')).toMatch(/patched/);
});

test('of ten claims at once exactly as many pass as fit', async () => {
  const answers = await Promise.all(Array.from({ length: 10 }, (_, i) => make(`race-${i}`, '2Gi')));
  expect(answers.filter((answer) => answer.includes('created'))).toHaveLength(2);
  expect(answers.filter((answer) => answer.includes('quota_exceeded'))).toHaveLength(8);
});

test('the Quota says what is used', async () => {
  await until(async () => {
    const quota = await cluster.api.get(quotas, { namespace: 'liqo-tenant-cons', name: 'slice-1' });
    expect(quota?.status?.used).toMatchObject({ 'requests.storage': '9Gi', persistentvolumeclaims: '3' });
    expect(quota?.status?.free).toMatchObject({ 'requests.storage': '1Gi' });
  });
});

test('data of a claim that ends stays as a RetainedVolume, and still counts', async () => {
  const volume = await bound('data');
  expect(await remove('data')).toMatch(/deleted/);
  await until(async () => expect((await record(volume))?.status?.phase).toBe('Kept'));
  expect(disk.data.has(volume)).toBe(true);
  expect(await make('more', '3Gi')).toMatch(/quota_exceeded/);
});

test('a claim of the same name gets the data that was handed back, within the quota', async () => {
  const [kept] = await cluster.api.list(retainedVolumes);
  const name = kept?.metadata.name ?? '';
  const adopt = { namespace: apps, claim: 'data' };
  await cluster.api.mergePatch(retainedVolumes, { name }, { spec: { adopt } });
  await until(async () => expect((await record(name))?.status?.phase).toBe('Adopting'));
  expect(await make('data', '4Gi')).toMatch(/created/);
  expect(await bound('data')).toBe(name);
  await until(async () => expect(await record(name)).toBeUndefined());
  const volume = await cluster.api.get(persistentVolumes, { name });
  expect(volume?.spec?.persistentVolumeReclaimPolicy).toBe('Delete');
  expect(volume?.metadata.labels?.['isthmus.dev/kept-for']).toBeUndefined();
});

test('the end of the mapping leaves the data of every claim, and no namespace', async () => {
  // A provisioner that is quicker than the PersistentVolume controller makes a volume for a claim that already has one, and takes it back.
  const live = await cluster.api.list(persistentVolumeClaims, { namespace: apps });
  const before = new Set(live.map(({ spec }) => spec?.volumeName));
  expect(before.size).toBe(3);
  await cluster.api.delete(namespaceMaps, { namespace: 'liqo-tenant-cons', name: 'here' });
  await until(async () => expect(await cluster.api.get(namespaces, { name: apps })).toBeUndefined());
  const records = await cluster.api.list(retainedVolumes);
  expect(new Set(records.map(({ metadata }) => metadata.name))).toEqual(before);
  for (const { metadata } of records) expect(disk.data.has(metadata.name)).toBe(true);
});
