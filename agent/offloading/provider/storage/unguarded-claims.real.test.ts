/** A claim in a namespace of a consumer that no webhook has seen, as when it was made between two installations: its data stays when the namespace goes. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connectKubeconfig } from '#kube/http/kubeconfig.ts';
import type { Cluster } from '#kube/model/types.ts';
import { openCluster } from '#kube/open-cluster.ts';
import {
  namespaces,
  type PersistentVolumeClaim,
  persistentVolumeClaims,
  persistentVolumes,
} from '#shared/domain/core-kinds.ts';
import { guestVolume } from '#shared/domain/guest-volume-keys.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { retainedVolumes } from '#shared/schema/isthmus/retained-volume.ts';
import { type NamespaceMap, namespaceMaps } from '#shared/schema/liqo/namespace-map.ts';
import { leaseApiServer } from '#test/harness/api-server-pool/lease.ts';
import { eventually } from '#test/harness/eventually.ts';
import { inOrder } from '#test/harness/in-order.ts';
import type { ApiServer } from '#test/harness/kube-apiserver.ts';
import { provisionVolumes, type VolumeProvisioner } from '#test/harness/volume-provisioner.ts';
import { createNamespaceMapController } from '../namespaces/controller.ts';
import { createGuestClaimController, createRetainedVolumeController } from './controller.ts';

const deps = { clock: systemClock, log: silentLog };
const end = new AbortController();
const tenant = 'liqo-tenant-rome';
const map = { namespace: tenant, name: 'milan' };
let server: ApiServer;
let cluster: Cluster;
let disk: VolumeProvisioner;
let running: Promise<unknown>;

// The last one looks again at what the first one made.
inOrder('file');
beforeAll(async () => {
  server = await leaseApiServer();
  cluster = openCluster(await connectKubeconfig(server.kubeconfig), deps, end.signal);
  const { api } = cluster;
  disk = await provisionVolumes(cluster);
  const labels = { 'liqo.io/tenant-namespace': 'true', 'liqo.io/remote-cluster-id': 'rome' };
  await api.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: tenant, labels } });
  await api.create(namespaceMaps, {
    apiVersion: 'offloading.liqo.io/v1beta1',
    kind: 'NamespaceMap',
    metadata: {
      ...map,
      labels: { 'liqo.io/replicated': 'true', 'liqo.io/originID': 'rome', 'liqo.io/remote-cluster-id': 'rome' },
    },
    spec: { desiredMapping: { shop: 'shop-rome', bar: 'bar-rome', inn: 'inn-rome' } },
  } as NamespaceMap);
  const under = { ...deps, cluster };
  running = Promise.all(
    [createNamespaceMapController, createGuestClaimController, createRetainedVolumeController].map((create) =>
      create(under).run(end.signal),
    ),
  );
}, 900_000);
afterAll(async () => {
  await disk?.stop();
  end.abort();
  await running;
  await server?.stop();
});

async function boundClaim(namespace: string): Promise<string> {
  const { api } = cluster;
  await eventually(`namespace ${namespace}`, () => api.get(namespaces, { name: namespace }));
  const claim = { namespace, name: 'data' };
  await api.create(persistentVolumeClaims, {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { ...claim, finalizers: ['example.com/theirs'] },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
  } as PersistentVolumeClaim);
  const found = await eventually('the claim to be bound', async () => {
    const now = await api.get(persistentVolumeClaims, claim);
    return now?.status?.phase === 'Bound' ? now : undefined;
  });
  return found.spec?.volumeName ?? '';
}

/** As an uninstallation leaves it: with its consumer's label, and without the finalizer. */
const label = (namespace: string) =>
  cluster.api.mergePatch(
    persistentVolumeClaims,
    { namespace, name: 'data' },
    { metadata: { labels: { [guestVolume.label]: 'rome' } } },
  );
const finalizersOf = async (namespace: string) =>
  (await cluster.api.get(persistentVolumeClaims, { namespace, name: 'data' }))?.metadata.finalizers;

async function expectKept(namespace: string, volume: string): Promise<void> {
  const { api } = cluster;
  const claim = { namespace, name: 'data' };
  await eventually('the claim to be let go by us', async () => {
    const now = await api.get(persistentVolumeClaims, claim);
    return now?.metadata.deletionTimestamp !== undefined && now.metadata.finalizers?.join() === 'example.com/theirs';
  });
  const record = await eventually('its record', () => api.get(retainedVolumes, { name: volume }));
  expect(record.spec).toMatchObject({ consumer: 'rome', remoteClaim: { namespace, name: 'data' } });
  await api.mergePatch(persistentVolumeClaims, claim, { metadata: { finalizers: null } });
  await eventually('the namespace to be gone', async () => !(await api.get(namespaces, { name: namespace })));
  const kept = await api.get(persistentVolumes, { name: volume });
  expect(kept?.spec?.persistentVolumeReclaimPolicy).toBe('Retain');
  expect(disk.data).toContain(volume);
}

test('with the label of its consumer it gets its guard', async () => {
  await Promise.all(['default', 'inn-rome'].map(boundClaim));
  await label('default');
  await label('inn-rome');
  await eventually('the guard of inn-rome/data', async () =>
    (await finalizersOf('inn-rome'))?.includes(guestVolume.finalizer),
  );
  expect(await finalizersOf('inn-rome')).toContain('example.com/theirs');
});

test('its data is kept when the namespace is no longer offloaded', async () => {
  const volume = await boundClaim('shop-rome');
  await cluster.api.mergePatch(namespaceMaps, map, { spec: { desiredMapping: { shop: null } } });
  await expectKept('shop-rome', volume);
});

test('its data is kept when the peering ends', async () => {
  const volume = await boundClaim('bar-rome');
  await cluster.api.delete(namespaceMaps, map);
  await expectKept('bar-rome', volume);
});

test('with the label of a consumer in a namespace of the provider itself it has no guard', async () => {
  expect(await finalizersOf('default')).toEqual(expect.arrayContaining(['example.com/theirs']));
  expect(await finalizersOf('default')).not.toContain(guestVolume.finalizer);
});
