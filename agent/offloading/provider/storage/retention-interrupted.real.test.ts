/** The data of guests' claims when the controller dies between two writes: against a real API server and its PersistentVolume controller. */
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { connectKubeconfig } from '#kube/http/kubeconfig.ts';
import type { Cluster, KubeApi } from '#kube/model/types.ts';
import { openCluster } from '#kube/open-cluster.ts';
import { namespaces, persistentVolumeClaims, persistentVolumes } from '#shared/domain/core-kinds.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { retainedVolumes } from '#shared/schema/isthmus/retained-volume.ts';
import { leaseApiServer } from '#test/harness/api-server-pool/lease.ts';
import { casesOf } from '#test/harness/cases.ts';
import { crashingClient } from '#test/harness/crashing-client.ts';
import { boundGuestClaim } from '#test/harness/guest-claims.ts';
import type { ApiServer } from '#test/harness/kube-apiserver.ts';
import { provisionVolumes, type VolumeProvisioner } from '#test/harness/volume-provisioner.ts';
import { createGuestClaimController, createRetainedVolumeController } from './controller.ts';

const deps = { clock: systemClock, log: silentLog };
const until = <T>(check: () => Promise<T>): Promise<T> => vi.waitFor(check, { timeout: 60_000, interval: 25 });
const end = new AbortController();
const namespace = 'shop-rome';
let server: ApiServer;
let cluster: Cluster;
let disk: VolumeProvisioner;

beforeAll(async () => {
  server = await leaseApiServer();
  cluster = openCluster(await connectKubeconfig(server.kubeconfig), deps, end.signal);
  await cluster.api.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
  disk = await provisionVolumes(cluster);
}, 900_000);
afterAll(async () => {
  await disk?.stop();
  end.abort();
  await server?.stop();
});

/** Of both controllers; its end is that of a process, not of an orderly stop. */
function start(api: KubeApi): () => void {
  const stop = new AbortController();
  const under = { ...deps, cluster: { ...cluster, api, events: { emit() {} } } };
  for (const create of [createGuestClaimController, createRetainedVolumeController])
    void create(under).run(stop.signal);
  return () => stop.abort();
}

const boundClaim = (name: string, annotations: Record<string, string> = {}): Promise<string> =>
  boundGuestClaim(cluster.api, { namespace, name, storage: '1Gi', annotations });

const gone = (name: string) =>
  until(async () => expect(await cluster.api.get(persistentVolumeClaims, { namespace, name })).toBeUndefined());

/** Runs controllers that die at write number `moment`, or have nothing left to write, then others. */
async function interrupted(
  moment: number,
  act: () => Promise<unknown>,
  reached: () => Promise<unknown>,
): Promise<void> {
  const { api, died } = crashingClient(cluster.api, moment);
  const kill = start(api);
  await act();
  const once = until(reached);
  await Promise.race([died, once]);
  kill();
  const stop = start(cluster.api);
  await once;
  stop();
}

const moments = casesOf([0, 1, 2, 3, 4, 5, 6, 7], [0, 2, 5]);

test.each(moments)(
  'a claim that ends without an order leaves data and record, with a crash at write %i',
  async (moment) => {
    const name = `kept-${moment}`;
    const volume = await boundClaim(name);
    await interrupted(
      moment,
      () => cluster.api.delete(persistentVolumeClaims, { namespace, name }),
      async () => {
        expect(await cluster.api.get(persistentVolumeClaims, { namespace, name })).toBeUndefined();
        const record = await cluster.api.get(retainedVolumes, { name: volume });
        expect(record?.status?.phase).toBe('Kept');
      },
    );
    const record = await cluster.api.get(retainedVolumes, { name: volume });
    expect(record?.spec).toMatchObject({
      consumer: 'rome',
      claim: { namespace: 'shop', name, uid: `home-${name}` },
      remoteClaim: { namespace, name },
      size: '1Gi',
    });
    // Released and still there: the PersistentVolume controller has seen the end of the claim, and deletes nothing.
    await until(async () =>
      expect((await cluster.api.get(persistentVolumes, { name: volume }))?.status?.phase).toBe('Released'),
    );
    expect(disk.data.has(volume)).toBe(true);
  },
  120_000,
);

test.each(moments)(
  'a claim that ends with the order takes its data along, with a crash at write %i',
  async (moment) => {
    const name = `ordered-${moment}`;
    const volume = await boundClaim(name, { 'isthmus.dev/data': 'delete', 'isthmus.dev/reclaim-policy': 'Delete' });
    await interrupted(
      moment,
      () => cluster.api.delete(persistentVolumeClaims, { namespace, name }),
      async () => expect(disk.data.has(volume)).toBe(false),
    );
    await gone(name);
    expect(await cluster.api.get(retainedVolumes, { name: volume })).toBeUndefined();
  },
  120_000,
);

test.each(moments)(
  'a kept volume is discarded only by its name, and then surely, with a crash at write %i',
  async (moment) => {
    const [name, other] = [`discarded-${moment}`, `beside-${moment}`];
    const [volume, beside] = [await boundClaim(name), await boundClaim(other)];
    const stop = start(cluster.api);
    for (const one of [name, other]) await cluster.api.delete(persistentVolumeClaims, { namespace, name: one });
    for (const one of [volume, beside])
      await until(async () => expect(await cluster.api.get(retainedVolumes, { name: one })).toBeDefined());
    await Promise.all([gone(name), gone(other)]);
    stop();
    await interrupted(
      moment,
      () => cluster.api.mergePatch(retainedVolumes, { name: volume }, { spec: { discard: true } }),
      async () => {
        expect(disk.data.has(volume)).toBe(false);
        expect(await cluster.api.get(retainedVolumes, { name: volume })).toBeUndefined();
      },
    );
    expect(disk.data.has(beside)).toBe(true);
    expect(await cluster.api.get(retainedVolumes, { name: beside })).toBeDefined();
  },
  120_000,
);

test('a record that is deleted by hand comes back, and the data stays', async () => {
  const name = 'careless';
  const volume = await boundClaim(name);
  const stop = start(cluster.api);
  await cluster.api.delete(persistentVolumeClaims, { namespace, name });
  await gone(name);
  const first = await until(async () => {
    const record = await cluster.api.get(retainedVolumes, { name: volume });
    expect(record).toBeDefined();
    return record;
  });
  await cluster.api.delete(retainedVolumes, { name: volume });
  await until(async () => {
    const record = await cluster.api.get(retainedVolumes, { name: volume });
    expect(record?.metadata.uid).toBeDefined();
    expect(record?.metadata.uid).not.toBe(first?.metadata.uid);
    expect(record?.spec).toEqual(first?.spec);
  });
  expect(disk.data.has(volume)).toBe(true);
  stop();
}, 120_000);
