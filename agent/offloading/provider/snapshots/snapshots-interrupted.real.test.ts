/** The controller of guests' snapshots dies at every single write, in turn, by the agent's own account: no data goes without order, none stays with one. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connectKubeconfig } from '#kube/http/kubeconfig.ts';
import type { Cluster, KubeApi } from '#kube/model/types.ts';
import { openCluster } from '#kube/open-cluster.ts';
import { namespaces, roleBindings } from '#shared/domain/core-kinds.ts';
import { volumeSnapshotContents, volumeSnapshots } from '#shared/domain/snapshot-kinds.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { connectAsAgent, giveAgentRights } from '#test/harness/agent-account.ts';
import { leaseApiServer } from '#test/harness/api-server-pool/lease.ts';
import { casesOf } from '#test/harness/cases.ts';
import { crashingClient } from '#test/harness/crashing-client.ts';
import { eventually } from '#test/harness/eventually.ts';
import { boundGuestClaim } from '#test/harness/guest-claims.ts';
import type { ApiServer } from '#test/harness/kube-apiserver.ts';
import {
  installSnapshotKinds,
  type PlayedSnapshots,
  playSnapshotController,
} from '#test/harness/snapshot-controller.ts';
import { provisionVolumes, type VolumeProvisioner } from '#test/harness/volume-provisioner.ts';
import { createGuestSnapshotController } from './controller.ts';
import { guardSnapshots } from './guard.ts';

const deps = { clock: systemClock, log: silentLog };
const end = new AbortController();
const namespace = 'shop-rome';
const moments = casesOf([0, 1, 2, 3, 4, 5, 6, 7], [1, 2, 3, 4]);
let server: ApiServer;
let cluster: Cluster;
let agent: Cluster;
let disk: VolumeProvisioner;
let taken: PlayedSnapshots;

beforeAll(async () => {
  server = await leaseApiServer();
  cluster = openCluster(await connectKubeconfig(server.kubeconfig), deps, end.signal);
  const { api } = cluster;
  for (const name of ['liqo', namespace])
    await api.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  await giveAgentRights(api);
  const group = 'rbac.authorization.k8s.io';
  await api.create(roleBindings, {
    apiVersion: `${group}/v1`,
    kind: 'RoleBinding',
    metadata: { namespace, name: 'isthmus-agent-guest' },
    roleRef: { apiGroup: group, kind: 'ClusterRole', name: 'isthmus-agent-guest' },
    subjects: [{ kind: 'ServiceAccount', name: 'isthmus-agent', namespace: 'liqo' }],
  });
  agent = openCluster(await connectAsAgent(server), deps, end.signal);
  disk = await provisionVolumes(cluster);
  await installSnapshotKinds(cluster);
  taken = await playSnapshotController(cluster);
  await boundGuestClaim(api, { namespace, name: 'data', storage: '1Gi' });
}, 900_000);
afterAll(async () => {
  await taken?.stop();
  await disk?.stop();
  end.abort();
  await server?.stop();
});

function start(api: KubeApi): () => void {
  const stop = new AbortController();
  void createGuestSnapshotController({ ...deps, cluster: { ...agent, api } }).run(stop.signal);
  return () => stop.abort();
}

/** As the webhook leaves it. */
const make = (
  name: string,
  marks: object = { labels: { 'isthmus.dev/guest': 'rome' }, finalizers: ['isthmus.dev/guest-snapshot'] },
) =>
  cluster.api.create(volumeSnapshots, {
    apiVersion: 'snapshot.storage.k8s.io/v1',
    kind: 'VolumeSnapshot',
    metadata: { namespace, name, ...marks },
    spec: { source: { persistentVolumeClaimName: 'data' } },
  });
const found = (name: string) => cluster.api.get(volumeSnapshots, { namespace, name });
const contentOf = async (name: string) => {
  const bound = (await found(name))?.status?.boundVolumeSnapshotContentName;
  return bound ? cluster.api.get(volumeSnapshotContents, { name: bound }) : undefined;
};
const remove = (name: string) => cluster.api.delete(volumeSnapshots, { namespace, name });

/** Dies at that write and is started again, until what is awaited is so. */
async function interrupted(
  moment: number,
  act: () => Promise<unknown>,
  reached: () => Promise<boolean>,
): Promise<void> {
  const { api, died } = crashingClient(agent.api, moment);
  const kill = start(api);
  await act();
  const once = eventually('the end', reached, { withinMs: 60_000 });
  await Promise.race([died, once]);
  kill();
  const stop = start(agent.api);
  await once;
  stop();
}

const isGuarded = (name: string) => async (): Promise<boolean> => {
  const content = await contentOf(name);
  return content?.spec.deletionPolicy === 'Retain' && (await found(name))?.status?.readyToUse === true;
};

for (const ordered of [false, true])
  test.each(moments)(
    `a snapshot that ends ${ordered ? 'by order takes its data along' : 'without order leaves its data'}, with a crash at write %i`,
    async (moment) => {
      const name = `${ordered ? 'ordered' : 'kept'}-${moment}`;
      await interrupted(moment, () => make(name), isGuarded(name));
      const content = await contentOf(name);
      const bound = { name: content?.metadata.name ?? '' };
      const handle = content?.status?.snapshotHandle ?? '';
      expect(taken.data.has(handle)).toBe(true);
      const order = { metadata: { annotations: { 'isthmus.dev/data': 'delete' } } };
      if (ordered) await cluster.api.mergePatch(volumeSnapshots, { namespace, name }, order);
      await interrupted(
        moment,
        () => remove(name),
        async () => (await found(name)) === undefined,
      );
      const left = await cluster.api.get(volumeSnapshotContents, bound);
      expect([taken.data.has(handle), left !== undefined]).toEqual([!ordered, !ordered]);
      if (!ordered) {
        expect(left?.metadata.labels).toEqual({ 'isthmus.dev/kept-for': 'rome' });
        expect(left?.spec.deletionPolicy).toBe('Retain');
      }
    },
    120_000,
  );

test('one that was made while no webhook and no controller was there keeps its data when the namespace is about to go', async () => {
  await make('unguarded', {});
  await eventually('the snapshot', async () => (await found('unguarded'))?.status?.readyToUse);
  const content = await contentOf('unguarded');
  expect(content?.spec.deletionPolicy).toBe('Delete');
  await guardSnapshots(agent.api, namespace, 'rome', end.signal);
  expect((await contentOf('unguarded'))?.spec.deletionPolicy).toBe('Retain');
  await remove('unguarded');
  const stop = start(agent.api);
  await eventually('its end', async () => !(await found('unguarded')));
  stop();
  expect(taken.data.has(content?.status?.snapshotHandle ?? '')).toBe(true);
});
