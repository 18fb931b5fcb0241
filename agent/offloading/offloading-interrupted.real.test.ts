/** The controllers die at every single write, in turn: after their restart the end is the same as without. */
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { connectKubeconfig } from '#kube/http/kubeconfig.ts';
import type { Cluster, KubeApi } from '#kube/model/types.ts';
import { openCluster } from '#kube/open-cluster.ts';
import { clusterRoles, namespaces, pods, roleBindings } from '#shared/domain/core-kinds.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { namespaceMaps } from '#shared/schema/liqo/namespace-map.ts';
import { type NamespaceOffloadingSpec, namespaceOffloadings } from '#shared/schema/liqo/namespace-offloading.ts';
import { shadowPods } from '#shared/schema/liqo/shadow-pod.ts';
import { virtualNodes } from '#shared/schema/liqo/virtual-node.ts';
import { leaseApiServer } from '#test/harness/api-server-pool/lease.ts';
import { casesOf } from '#test/harness/cases.ts';
import { crashingClient } from '#test/harness/crashing-client.ts';
import type { ApiServer } from '#test/harness/kube-apiserver.ts';
import { createOffloadingControllers } from './offloading.ts';

const deps = { clock: systemClock, log: silentLog };
const apiVersion = 'offloading.liqo.io/v1beta1';
const own = { namespace: 'liqo-tenant-prov', name: 'prov' };
const copy = { namespace: 'liqo-tenant-cons', name: 'prov' };
const moments = casesOf([0, 1, 2, 3, 4, 5], [1, 3]);

let server: ApiServer;
let cluster: Cluster;
const end = new AbortController();
const until = <T>(check: () => Promise<T>): Promise<T> => vi.waitFor(check, { timeout: 60_000, interval: 25 });

/** `api`: through which they write. The returned function ends them without waiting for passes that hang. */
function start(api: KubeApi = cluster.api): () => void {
  const stop = new AbortController();
  const quiet = { emit() {} };
  const controllers = createOffloadingControllers({
    ...deps,
    cluster: { ...cluster, api, events: quiet },
    clusterId: 'cons',
  });
  for (const controller of controllers) void controller.run(stop.signal);
  return () => stop.abort();
}

/** Runs controllers that die at write number `moment` (or have nothing left to write), then others that live until `reached`. */
async function interrupted(moment: number, act: () => Promise<unknown>, reached: () => Promise<void>): Promise<void> {
  const { api, died } = crashingClient(cluster.api, moment);
  const kill = start(api);
  await act();
  const once = until(reached);
  await Promise.race([died, once]);
  kill();
  const stop = start();
  await once;
  await until(reached);
  stop();
}

const makeNamespace = (name: string, labels: Record<string, string> = {}) =>
  cluster.api.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } });
const makeMap = (ref: typeof own, labels: Record<string, string>) =>
  cluster.api.create(namespaceMaps, { apiVersion, kind: 'NamespaceMap', metadata: { ...ref, labels }, spec: {} });

beforeAll(async () => {
  server = await leaseApiServer();
  cluster = openCluster(await connectKubeconfig(server.kubeconfig), deps, end.signal);
  const tenant = (id: string) => ({ 'liqo.io/tenant-namespace': 'true', 'liqo.io/remote-cluster-id': id });
  for (const id of ['prov', 'cons']) await makeNamespace(`liqo-tenant-${id}`, tenant(id));
  const group = 'rbac.authorization.k8s.io';
  const role = {
    apiVersion: `${group}/v1`,
    kind: 'ClusterRole',
    metadata: { name: 'liqo-virtual-kubelet-remote' },
    rules: [],
  };
  await cluster.api.create(clusterRoles, role);
  await makeMap(own, {
    'liqo.io/replication': 'true',
    'liqo.io/remoteID': 'prov',
    'liqo.io/remote-cluster-id': 'prov',
  });
  await makeMap(copy, {
    'liqo.io/replicated': 'true',
    'liqo.io/originID': 'cons',
    'liqo.io/remote-cluster-id': 'cons',
  });
  await cluster.api.create(virtualNodes, {
    apiVersion,
    kind: 'VirtualNode',
    metadata: { namespace: own.namespace, name: 'vn1' },
    spec: { clusterID: 'prov' },
  });
}, 900_000);
afterAll(async () => {
  end.abort();
  await server?.stop();
});

test.each(moments)('offloading and taking it back, dying after %i writes', async (moment) => {
  const name = `demo-${moment}`;
  const ref = { namespace: name, name: 'offloading' };
  const labels = async () => (await cluster.api.get(namespaces, { name }))?.metadata.labels ?? {};
  const desired = async () => (await cluster.api.get(namespaceMaps, own))?.spec?.desiredMapping ?? {};
  const object = { apiVersion, kind: 'NamespaceOffloading', metadata: ref, spec: {} as NamespaceOffloadingSpec };
  await makeNamespace(name);
  await interrupted(
    moment,
    () => cluster.api.create(namespaceOffloadings, object),
    async () => {
      const found = await cluster.api.get(namespaceOffloadings, ref);
      expect(found?.status?.offloadingPhase).toBe('InProgress');
      expect(found?.metadata.finalizers).toHaveLength(1);
      expect(await desired()).toHaveProperty(name, `${name}-cons`);
      expect(await labels()).toHaveProperty(['liqo.io/scheduling-enabled'], 'true');
    },
  );
  await interrupted(
    moment,
    () => cluster.api.delete(namespaceOffloadings, ref),
    async () => {
      expect(await cluster.api.get(namespaceOffloadings, ref)).toBeUndefined();
      expect(await desired()).not.toHaveProperty(name);
      expect(await labels()).not.toHaveProperty(['liqo.io/scheduling-enabled']);
    },
  );
});

test.each(moments)(
  'giving a namespace, running a pod in it and taking both away, dying after %i writes',
  async (moment) => {
    const local = `apps-${moment}`;
    const remote = `${local}-cons`;
    const want = (value: string | null) =>
      cluster.api.mergePatch(namespaceMaps, copy, { spec: { desiredMapping: { [local]: value } } });
    const current = async () => (await cluster.api.get(namespaceMaps, copy))?.status?.currentMapping?.[local];
    await interrupted(
      moment,
      () => want(remote),
      async () => {
        expect(await current()).toEqual({ remoteNamespace: remote, phase: 'Accepted' });
        expect(await cluster.api.get(roleBindings, { namespace: remote, name: copy.namespace })).toBeDefined();
      },
    );
    const ref = { namespace: remote, name: 'web' };
    const shadow = {
      apiVersion,
      kind: 'ShadowPod',
      metadata: { ...ref, labels: { 'offloading.liqo.io/origin': 'cons' } },
      spec: { pod: { containers: [{ name: 'a', image: 'a' }] } },
    };
    await interrupted(
      moment,
      () => cluster.api.create(shadowPods, shadow),
      async () => {
        expect(await cluster.api.get(pods, ref)).toBeDefined();
        expect((await cluster.api.get(shadowPods, ref))?.status?.phase).toBe('Pending');
      },
    );
    await interrupted(
      moment,
      () => want(null),
      async () => {
        expect(await current()).toBeUndefined();
        expect(await cluster.api.get(namespaces, { name: remote })).toBeUndefined();
      },
    );
  },
);

test('B122 an offloading is extended to a provider that is peered later', async () => {
  const stop = start();
  const ref = { namespace: 'wide', name: 'offloading' };
  const late = { namespace: 'liqo-tenant-late', name: 'late' };
  const status = async () => (await cluster.api.get(namespaceOffloadings, ref))?.status;
  const spec = {} as NamespaceOffloadingSpec;
  await makeNamespace('wide');
  await cluster.api.create(namespaceOffloadings, { apiVersion, kind: 'NamespaceOffloading', metadata: ref, spec });
  await until(async () => expect(Object.keys((await status())?.remoteNamespacesConditions ?? {})).toEqual(['prov']));
  const peerOf = { 'liqo.io/remote-cluster-id': 'late' };
  await makeNamespace(late.namespace, { 'liqo.io/tenant-namespace': 'true', ...peerOf });
  await makeMap(late, { 'liqo.io/replication': 'true', 'liqo.io/remoteID': 'late', ...peerOf });
  const virtualNode = { apiVersion, kind: 'VirtualNode', metadata: late, spec: { clusterID: 'late' } };
  await cluster.api.create(virtualNodes, virtualNode);
  await until(async () =>
    expect((await cluster.api.get(namespaceMaps, late))?.spec?.desiredMapping).toEqual({ wide: 'wide-cons' }),
  );
  await until(async () =>
    expect((await status())?.remoteNamespacesConditions?.late).toMatchObject([
      { status: 'True', reason: 'ClusterSelected' },
      { status: 'False', reason: 'Creating' },
    ]),
  );
  await cluster.api.delete(virtualNodes, late);
  await cluster.api.delete(namespaceMaps, late);
  await cluster.api.delete(namespaceOffloadings, ref);
  await until(async () => expect(await cluster.api.get(namespaceOffloadings, ref)).toBeUndefined());
  stop();
});

test('a deleted map takes its namespaces along, and nothing of the dead is left', async () => {
  const stop = start();
  await cluster.api.mergePatch(namespaceMaps, copy, { spec: { desiredMapping: { last: 'last-cons' } } });
  await until(async () => expect(await cluster.api.get(namespaces, { name: 'last-cons' })).toBeDefined());
  await cluster.api.delete(namespaceMaps, copy);
  await until(async () => expect(await cluster.api.get(namespaceMaps, copy)).toBeUndefined());
  // The API server ends what the map has only deleted.
  const labelSelector = 'liqo.io/remote-cluster-id=cons,liqo.io/tenant-namespace!=true';
  const given = () => cluster.api.list(namespaces, { labelSelector });
  expect((await given()).filter(({ metadata }) => !metadata.deletionTimestamp)).toEqual([]);
  await until(async () => expect(await given()).toEqual([]));
  expect((await cluster.api.get(namespaceMaps, own))?.spec?.desiredMapping ?? {}).toEqual({});
  stop();
});
