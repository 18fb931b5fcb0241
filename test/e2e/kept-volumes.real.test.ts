/** `isthmus volume`, and what `isthmus unoffload` says of volumes, against a real API server with the agent's controllers. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  createGuestClaimController,
  createRetainedVolumeController,
} from '#agent/offloading/provider/storage/controller.ts';
import { isthmus, type Ran } from '#cli/captured-io.ts';
import { openLoaded } from '#cli/cluster/open.ts';
import { releaseGuestData } from '#cli/install/guest-claims.ts';
import { connectKubeconfig } from '#kube/http/kubeconfig.ts';
import type { Cluster } from '#kube/model/types.ts';
import { openCluster } from '#kube/open-cluster.ts';
import { namespaces, persistentVolumeClaims, persistentVolumes } from '#shared/domain/core-kinds.ts';
import { guestVolume } from '#shared/domain/guest-volume-keys.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { namespaceOffloadings } from '#shared/schema/liqo/namespace-offloading.ts';
import { leaseApiServer } from '#test/harness/api-server-pool/lease.ts';
import { eventually } from '#test/harness/eventually.ts';
import { boundGuestClaim } from '#test/harness/guest-claims.ts';
import type { ApiServer } from '#test/harness/kube-apiserver.ts';
import { provisionVolumes, type VolumeProvisioner } from '#test/harness/volume-provisioner.ts';

const deps = { clock: systemClock, log: silentLog };
const stop = new AbortController();
/** Of the controllers that run now. */
let installation = new AbortController();
let server: ApiServer;
let cluster: Cluster;
let disk: VolumeProvisioner;
let running: Promise<unknown>;

const run = (...args: string[]): Promise<Ran> => isthmus([...args, '--kubeconfig', server.kubeconfigPath], {});
const claimOf = (namespace: string, name: string) => cluster.api.get(persistentVolumeClaims, { namespace, name });

/** A claim of consumer rome that ended. Resolves with the name of its volume. */
async function keptVolume(name: string, nameHere = name): Promise<string> {
  const ref = { namespace: 'shop-rome', name: nameHere };
  const volume = await boundGuestClaim(cluster.api, { ...ref, name, nameHere, storage: '2Gi' });
  await cluster.api.delete(persistentVolumeClaims, ref);
  await eventually('a line in the list', async () => {
    const { out } = await run('volume', 'list', '-o', 'name');
    return out.includes(volume) && (await claimOf(ref.namespace, nameHere)) === undefined;
  });
  return volume;
}

function install(): void {
  const under = { ...deps, cluster };
  installation = new AbortController();
  const { signal } = installation;
  running = Promise.all(
    [createGuestClaimController(under), createRetainedVolumeController(under)].map((one) => one.run(signal)),
  );
}

beforeAll(async () => {
  server = await leaseApiServer();
  cluster = openCluster(await connectKubeconfig(server.kubeconfig), deps, stop.signal);
  for (const name of ['rescue', 'shop'])
    await cluster.api.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  const metadata = { name: 'shop-rome', labels: { [label.remoteClusterId]: 'rome' } };
  await cluster.api.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata });
  disk = await provisionVolumes(cluster);
  install();
}, 900_000);
afterAll(async () => {
  await disk?.stop();
  installation.abort();
  stop.abort();
  await running;
  await server?.stop();
});

test('list names consumer, claim, size and the end of the promise, and filters by consumer', async () => {
  const volume = await keptVolume('listed');
  const { out } = await run('volume', 'list');
  expect(out).toMatch(new RegExp(`${volume}\\s+rome\\s+shop/listed\\s+2Gi\\s+records\\s+Kept\\s+\\d{4}-`));
  const other = await run('volume', 'list', '--consumer', 'oslo');
  expect(other.out + other.err).toContain('nothing is kept');
});

test('adopt gives the data to a new claim, once', async () => {
  const volume = await keptVolume('lost');
  expect(await run('volume', 'adopt', volume, '--namespace', 'rescue', '--claim', 'found')).toMatchObject({
    code: 0,
    out: 'claim rescue/found has the data of shop/lost\n',
  });
  const claim = await claimOf('rescue', 'found');
  expect(claim).toMatchObject({ status: { phase: 'Bound' }, spec: { volumeName: volume } });
  expect((await cluster.api.get(persistentVolumes, { name: volume }))?.spec?.persistentVolumeReclaimPolicy).toBe(
    'Retain',
  );
  const again = await run('volume', 'adopt', volume);
  expect(again.code).toBe(4);
  expect(again.err).toContain(`no RetainedVolume ${volume}`);
});

test('adopt without a namespace gives it to the next claim of the consumer, and a reserved volume is not discarded', async () => {
  const volume = await keptVolume('back');
  expect((await run('volume', 'adopt', volume)).out).toContain('reserved for claim shop-rome/back of rome');
  const refused = await run('volume', 'discard', volume);
  expect(refused.code).not.toBe(0);
  expect(refused.err).toContain('is reserved for claim shop-rome/back');
  expect(disk.data.has(volume)).toBe(true);
});

test('adopt without a namespace gives it to the next claim also where the one that had it had another name here', async () => {
  const volume = await keptVolume('moved', 'moved-73e09732');
  expect((await run('volume', 'adopt', volume)).out).toContain('reserved for claim shop-rome/moved of rome');
  await eventually('the reservation', async () => {
    const { claimRef } = (await cluster.api.get(persistentVolumes, { name: volume }))?.spec ?? {};
    return claimRef?.name === 'moved' && claimRef.uid === undefined;
  });
  expect(await boundGuestClaim(cluster.api, { namespace: 'shop-rome', name: 'moved', storage: '2Gi' })).toBe(volume);
});

test('discard deletes the data that it names, and no other', async () => {
  const [volume, other] = [await keptVolume('old'), await keptVolume('beside')];
  expect(await run('volume', 'discard', volume)).toMatchObject({
    code: 0,
    out: 'the data of shop/old of rome is deleted\n',
  });
  expect(disk.data.has(volume)).toBe(false);
  expect(disk.data.has(other)).toBe(true);
  const unknown = await run('volume', 'discard', 'nothing');
  expect(unknown.code).toBe(4);
});

test('unoffload says of which claims the providers keep the data, before it acts', async () => {
  await cluster.api.create(persistentVolumes, {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name: 'pvc-far' },
    spec: {
      capacity: { storage: '3Gi' },
      accessModes: ['ReadWriteOnce'],
      persistentVolumeReclaimPolicy: 'Retain',
      csi: { driver: 'storage.isthmus.dev', volumeHandle: 'milan/shop-here/data' },
      claimRef: { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace: 'shop', name: 'data', uid: 'gone' },
    },
  });
  await cluster.api.create(namespaceOffloadings, {
    apiVersion: 'offloading.liqo.io/v1beta1',
    kind: 'NamespaceOffloading',
    metadata: { namespace: 'shop', name: 'offloading' },
    spec: {},
  } as never);
  const { err, out } = await run('unoffload', 'namespace', 'shop');
  expect(err).toContain('  shop/data, 3Gi, at milan');
  expect(out).toContain('no longer offloaded');
});

test('an uninstallation takes guards and reservations off, keeps every volume, and the next installation puts both back', async () => {
  const lives = { namespace: 'shop-rome', name: 'lives' };
  const livesOn = await boundGuestClaim(cluster.api, { ...lives, storage: '2Gi' });
  const kept = await keptVolume('wanted');
  await run('volume', 'adopt', kept);
  const volumeOf = (name: string) => cluster.api.get(persistentVolumes, { name });
  // kube-controller-manager writes the phase a moment after the agent has written the reservation.
  const isReserved = async () => {
    const { spec, status } = (await volumeOf(kept)) ?? {};
    return spec?.claimRef !== undefined && spec.claimRef.uid === undefined && status?.phase === 'Available';
  };
  await eventually('the reservation', isReserved);
  installation.abort();
  await running;
  const loaded = { text: server.kubeconfig, context: 'test', server: server.url };
  const kube = await openLoaded(loaded, server.kubeconfigPath, { clock: systemClock, signal: stop.signal });
  await eventually('everything to be released', () => releaseGuestData(kube));
  expect(await isReserved()).toBe(false);
  const finalizers = async () => (await claimOf(lives.namespace, lives.name))?.metadata.finalizers ?? [];
  expect(await finalizers()).not.toContain(guestVolume.finalizer);
  for (const name of [livesOn, kept])
    expect((await volumeOf(name))?.spec).toMatchObject({ persistentVolumeReclaimPolicy: 'Retain' });
  install();
  await eventually('the guard', async () => (await finalizers()).includes(guestVolume.finalizer));
  await eventually('the reservation to be back', isReserved);
  expect(await boundGuestClaim(cluster.api, { namespace: 'shop-rome', name: 'wanted', storage: '2Gi' })).toBe(kept);
});
