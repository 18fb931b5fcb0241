/** Namespace offloading and ShadowPods on a real API server that plays both roles: consumer `cons` and provider `prov`. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { connectKubeconfig } from '#kube/http/kubeconfig.ts';
import type { Cluster } from '#kube/model/types.ts';
import { openCluster } from '#kube/open-cluster.ts';
import { clusterRoles, namespaces, nodes, pods, roleBindings } from '#shared/domain/core-kinds.ts';
import type { Namespace, Pod, PodSpec } from '#shared/domain/kube-object.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { foreignClusters } from '#shared/schema/liqo/foreign-cluster.ts';
import { type NamespaceMap, namespaceMaps } from '#shared/schema/liqo/namespace-map.ts';
import {
  type NamespaceOffloading,
  type NamespaceOffloadingSpec,
  namespaceOffloadings,
} from '#shared/schema/liqo/namespace-offloading.ts';
import { quotas } from '#shared/schema/liqo/quota.ts';
import { shadowPods } from '#shared/schema/liqo/shadow-pod.ts';
import { virtualNodes } from '#shared/schema/liqo/virtual-node.ts';
import { leaseApiServer } from '#test/harness/api-server-pool/lease.ts';
import { acceptGuests } from '#test/harness/guest-policy.ts';
import { inOrder } from '#test/harness/in-order.ts';
import type { ApiServer } from '#test/harness/kube-apiserver.ts';
import { createOffloadingControllers } from './offloading.ts';

const deps = { clock: systemClock, log: silentLog };
const patience = { timeout: 90_000, interval: 25 };
const apiVersion = 'offloading.liqo.io/v1beta1';
const original = { namespace: 'liqo-tenant-prov', name: 'prov' };
const replica = { namespace: 'liqo-tenant-cons', name: 'prov' };
let server: ApiServer;
let cluster: Cluster;
const end = new AbortController();
let running: { stop(): Promise<void> };

function startControllers(kubeconfig: Cluster): typeof running {
  const stop = new AbortController();
  const done = createOffloadingControllers({ ...deps, cluster: kubeconfig, clusterId: 'cons' }).map((c) =>
    c.run(stop.signal),
  );
  return {
    stop: async () => {
      stop.abort();
      await Promise.all(done);
    },
  };
}

const makeNamespace = (name: string, labels: Record<string, string> = {}): Promise<Namespace> =>
  cluster.api.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } });
const namespace = (name: string) => cluster.api.get(namespaces, { name });
const map = async (ref: typeof replica): Promise<NamespaceMap> =>
  (await cluster.api.get(namespaceMaps, ref)) as NamespaceMap;
const offloading = (ns: string) => cluster.api.get(namespaceOffloadings, { namespace: ns, name: 'offloading' });
const offload = (ns: string, spec: Partial<NamespaceOffloadingSpec> = {}) =>
  cluster.api.create(namespaceOffloadings, {
    apiVersion,
    kind: 'NamespaceOffloading',
    metadata: { namespace: ns, name: 'offloading' },
    spec: spec as NamespaceOffloadingSpec,
  });
const until = <T>(check: () => Promise<T>): Promise<T> => vi.waitFor(check, patience);

/** What the replicator does: spec there, status back. The controllers may write meanwhile: then it looks again. */
const replicate = (): Promise<unknown> =>
  until(async () => {
    const desiredMapping = (await map(original)).spec?.desiredMapping ?? {};
    const there = await map(replica);
    await cluster.api.update(namespaceMaps, { ...there, spec: { desiredMapping } });
  });
const bringStatusBack = (): Promise<unknown> =>
  until(async () => {
    const { status } = await map(replica);
    const here = await map(original);
    await cluster.api.update(namespaceMaps, { ...here, status: status ?? {} }, { subresource: 'status' });
  });

async function makeMap(ref: typeof replica, labels: Record<string, string>): Promise<void> {
  await cluster.api.create(namespaceMaps, { apiVersion, kind: 'NamespaceMap', metadata: { ...ref, labels }, spec: {} });
}

inOrder('file');
beforeAll(async () => {
  server = await leaseApiServer();
  cluster = openCluster(await connectKubeconfig(server.kubeconfig), deps, end.signal);
  const tenant = (id: string) => ({ 'liqo.io/tenant-namespace': 'true', 'liqo.io/remote-cluster-id': id });
  await makeNamespace('liqo-tenant-prov', tenant('prov'));
  await makeNamespace('liqo-tenant-cons', tenant('cons'));
  await cluster.api.create(clusterRoles, {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRole',
    metadata: { name: 'liqo-virtual-kubelet-remote' },
    rules: [],
  });
  await acceptGuests(cluster.api, { namespaces: ['taken'] }, 'names');
  running = startControllers(cluster);
  await makeMap(original, {
    'liqo.io/replication': 'true',
    'liqo.io/remoteID': 'prov',
    'liqo.io/remote-cluster-id': 'prov',
  });
  const copied = { 'liqo.io/replication': 'false', 'liqo.io/replicated': 'true', 'liqo.io/originID': 'cons' };
  await makeMap(replica, { ...copied, 'liqo.io/remote-cluster-id': 'cons' });
  await cluster.api.create(virtualNodes, {
    apiVersion,
    kind: 'VirtualNode',
    metadata: { namespace: 'liqo-tenant-prov', name: 'vn1' },
    spec: { clusterID: 'prov', labels: { zone: 'south' } },
  });
}, 900_000);
afterAll(async () => {
  await running?.stop();
  end.abort();
  await server?.stop();
});

describe('namespace offloading at the consumer', () => {
  test('B007 B008 B011 B012 B013 asks the provider for the namespace, labels it and says Ready when it is there', async () => {
    await makeNamespace('demo');
    await offload('demo');
    expect((await offloading('demo'))?.spec).toMatchObject({
      namespaceMappingStrategy: 'DefaultName',
      podOffloadingStrategy: 'LocalAndRemote',
    });
    await until(async () => expect((await map(original)).spec?.desiredMapping).toEqual({ demo: 'demo-cons' }));
    await until(async () => expect((await offloading('demo'))?.status?.offloadingPhase).toBe('InProgress'));
    expect((await namespace('demo'))?.metadata.labels).toMatchObject({ 'liqo.io/scheduling-enabled': 'true' });
    expect((await offloading('demo'))?.metadata.finalizers).toEqual([
      'namespaceoffloading-controller.liqo.io/finalizer',
    ]);

    await replicate();
    await until(async () => expect((await map(replica)).status?.currentMapping?.demo?.phase).toBe('Accepted'));
    await bringStatusBack();
    expect((await map(original)).status?.currentMapping?.demo?.phase).toBe('Accepted');
    const ready = await until(async () => {
      const found = (await offloading('demo')) as NamespaceOffloading;
      expect(found.status?.offloadingPhase).toBe('Ready');
      return found;
    });
    expect(ready.status).toMatchObject({
      remoteNamespaceName: 'demo-cons',
      observedGeneration: ready.metadata.generation,
    });
    expect(ready.status?.remoteNamespacesConditions?.prov).toMatchObject([
      { type: 'OffloadingRequired', status: 'True', reason: 'ClusterSelected' },
      { type: 'Ready', status: 'True', reason: 'NamespaceCreated' },
    ]);
  });

  test('follows the selector, on the real Node when there is one and on what it would be until then', async () => {
    const select = (zone: string) => ({
      spec: {
        clusterSelector: {
          nodeSelectorTerms: [{ matchExpressions: [{ key: 'zone', operator: 'In', values: [zone] }] }],
        },
      },
    });
    const where = { namespace: 'selective', name: 'offloading' };
    const mapped = async () => (await map(original)).spec?.desiredMapping?.selective;
    await makeNamespace('selective');
    await offload('selective', select('north').spec);
    await until(async () => expect((await offloading('selective'))?.status?.offloadingPhase).toBe('NoClusterSelected'));
    expect(await mapped()).toBeUndefined();
    await cluster.api.mergePatch(namespaceOffloadings, where, select('south'));
    await until(async () => expect(await mapped()).toBe('selective-cons'));
    const labels = { 'liqo.io/type': 'virtual-node', 'liqo.io/remote-cluster-id': 'prov', zone: 'east' };
    await cluster.api.create(nodes, { apiVersion: 'v1', kind: 'Node', metadata: { name: 'vn1', labels } });
    await until(async () => expect(await mapped()).toBeUndefined());
    await cluster.api.delete(nodes, { name: 'vn1' });
    await until(async () => expect(await mapped()).toBe('selective-cons'));
    await cluster.api.delete(namespaceOffloadings, where);
    await until(async () => expect(await offloading('selective')).toBeUndefined());
  });

  test('B055 gives one remote name to one namespace only, and names that namespace', async () => {
    for (const name of ['first', 'second']) await makeNamespace(name);
    const spec = { namespaceMappingStrategy: 'SelectedName', remoteNamespaceName: 'shared' } as const;
    await offload('first', spec);
    await until(async () => expect((await map(original)).spec?.desiredMapping?.first).toBe('shared'));
    await offload('second', spec);
    await until(async () => expect((await offloading('second'))?.status?.offloadingPhase).toBe('AllFailed'));
    const [, ready] = (await offloading('second'))?.status?.remoteNamespacesConditions?.prov ?? [];
    expect(ready).toMatchObject({ status: 'False', reason: 'NameConflict' });
    expect(ready?.message).toMatch(/namespace first of this cluster has the remote name shared/);
    expect((await map(original)).spec?.desiredMapping).not.toHaveProperty('second');
    await cluster.api.delete(namespaceOffloadings, { namespace: 'first', name: 'offloading' });
    await until(async () => expect((await map(original)).spec?.desiredMapping).toMatchObject({ second: 'shared' }));
    await cluster.api.delete(namespaceOffloadings, { namespace: 'second', name: 'offloading' });
    await until(async () => expect(await offloading('second')).toBeUndefined());
  });

  test('takes out the mapping of a namespace whose NamespaceOffloading was removed past its finalizer', async () => {
    await makeNamespace('forced');
    await offload('forced');
    await until(async () => expect((await map(original)).spec?.desiredMapping).toHaveProperty('forced'));
    const where = { namespace: 'forced', name: 'offloading' };
    await running.stop();
    await cluster.api.delete(namespaceOffloadings, where);
    await cluster.api.mergePatch(namespaceOffloadings, where, { metadata: { finalizers: null } });
    await until(async () => expect(await offloading('forced')).toBeUndefined());
    running = startControllers(cluster);
    await until(async () => expect((await map(original)).spec?.desiredMapping).not.toHaveProperty('forced'));
  });
});

describe('namespaces at the provider', () => {
  const want = (desiredMapping: Record<string, string | null>) =>
    cluster.api.mergePatch(namespaceMaps, replica, { spec: { desiredMapping } });
  const current = async () => (await map(replica)).status?.currentMapping;

  test('B009 B010 belong to the consumer and carry the binding that lets it work there', async () => {
    const made = await namespace('demo-cons');
    expect(made?.metadata.labels).toMatchObject({ 'liqo.io/remote-cluster-id': 'cons' });
    expect(made?.metadata.annotations).toMatchObject({
      'liqo.io/managed-by-namespace-map': 'liqo-tenant-cons/prov',
      'liqo.io/original-name': 'demo',
    });
    const binding = await until(async () => {
      const found = await cluster.api.get(roleBindings, { namespace: 'demo-cons', name: 'liqo-tenant-cons' });
      expect(found).toBeDefined();
      return found;
    });
    expect(binding).toMatchObject({
      roleRef: { kind: 'ClusterRole', name: 'liqo-virtual-kubelet-remote' },
      subjects: [{ kind: 'Group', name: 'cons' }],
    });
  });

  test('get their binding back when it is changed or deleted', async () => {
    const ref = { namespace: 'demo-cons', name: 'liqo-tenant-cons' };
    const group = 'rbac.authorization.k8s.io';
    await cluster.api.mergePatch(roleBindings, ref, { subjects: [{ apiGroup: group, kind: 'Group', name: 'thief' }] });
    await until(async () =>
      expect((await cluster.api.get(roleBindings, ref))?.subjects).toMatchObject([{ name: 'cons' }]),
    );
    await cluster.api.delete(roleBindings, ref);
    await until(async () => expect(await cluster.api.get(roleBindings, ref)).toBeDefined());
    await running.stop();
    await cluster.api.delete(roleBindings, ref);
    await cluster.api.create(roleBindings, {
      apiVersion: `${group}/v1`,
      kind: 'RoleBinding',
      metadata: { ...ref, labels: { 'liqo.io/remote-cluster-id': 'cons' } },
      roleRef: { apiGroup: group, kind: 'ClusterRole', name: 'cluster-admin' },
      subjects: [{ apiGroup: group, kind: 'Group', name: 'cons' }],
    });
    running = startControllers(cluster);
    await until(async () =>
      expect((await cluster.api.get(roleBindings, ref))?.roleRef.name).toBe('liqo-virtual-kubelet-remote'),
    );
  });

  test('that exist already are not touched; the entry succeeds by itself once the name is free', async () => {
    const theirs = await makeNamespace('taken');
    await want({ busy: 'taken' });
    await until(async () =>
      expect((await current())?.busy).toEqual({ remoteNamespace: 'taken', phase: 'CreationLoopBackOff' }),
    );
    expect((await namespace('taken'))?.metadata).toEqual(theirs.metadata);
    await cluster.api.delete(namespaces, { name: 'taken' });
    await until(async () => expect((await current())?.busy?.phase).toBe('Accepted'));
    expect((await namespace('taken'))?.metadata.annotations?.['liqo.io/original-name']).toBe('busy');
  });

  test('are refused under reserved names and to a second local namespace', async () => {
    await want({ evil: 'kube-system', own: 'liqo-tenant-cons', copy: 'taken' });
    await until(async () =>
      expect(await current()).toMatchObject({
        evil: { phase: 'CreationLoopBackOff' },
        own: { phase: 'CreationLoopBackOff' },
        copy: { phase: 'CreationLoopBackOff' },
        busy: { phase: 'Accepted' },
      }),
    );
    expect((await namespace('kube-system'))?.metadata.annotations ?? {}).toEqual({});
    await want({ evil: null, own: null, copy: null });
    await until(async () => expect(Object.keys((await current()) ?? {}).sort()).toEqual(['busy', 'demo']));
    expect((await namespace('taken'))?.metadata.deletionTimestamp).toBeUndefined();
  });

  test('are made only for the consumer of the tenant namespace', async () => {
    const forged = { namespace: 'liqo-tenant-cons', name: 'forged' };
    await makeMap(forged, { 'liqo.io/replicated': 'true', 'liqo.io/originID': 'victim' });
    await cluster.api.mergePatch(namespaceMaps, forged, { spec: { desiredMapping: { x: 'x-victim' } } });
    await want({ after: 'after-cons' });
    await until(async () => expect((await current())?.after?.phase).toBe('Accepted'));
    expect(await namespace('x-victim')).toBeUndefined();
    await cluster.api.delete(namespaceMaps, forged);
  });

  test('go away with their entry, which stays Terminating until they are gone', async () => {
    await cluster.api.mergePatch(namespaces, { name: 'taken' }, { metadata: { finalizers: ['example.dev/hold'] } });
    await want({ busy: null, after: null });
    await until(async () =>
      expect((await current())?.busy).toEqual({ remoteNamespace: 'taken', phase: 'Terminating' }),
    );
    await until(async () => expect((await namespace('taken'))?.metadata.deletionTimestamp).toBeDefined());
    expect((await current())?.busy?.phase).toBe('Terminating');
    await cluster.api.mergePatch(namespaces, { name: 'taken' }, { metadata: { finalizers: null } });
    await until(async () => expect(Object.keys((await current()) ?? {})).toEqual(['demo']));
  });
});

describe('ShadowPods', () => {
  const spec = (image = 'app:1', more: Partial<PodSpec> = {}): PodSpec => ({
    terminationGracePeriodSeconds: 0,
    containers: [{ name: 'app', image }],
    ...more,
  });
  const shadow = (
    name: string,
    pod = spec(),
    labels: Record<string, string> = { 'offloading.liqo.io/origin': 'cons' },
  ) =>
    cluster.api.create(shadowPods, {
      apiVersion,
      kind: 'ShadowPod',
      metadata: { namespace: 'demo-cons', name, labels, annotations: { note: 'mine' } },
      spec: { pod },
    });
  const at = (name: string) => ({ namespace: 'demo-cons', name });
  const pod = (name: string) => cluster.api.get(pods, at(name));
  const made = (name: string): Promise<Pod> =>
    until(async () => {
      const found = await pod(name);
      expect(found).toBeDefined();
      return found as Pod;
    });
  const setPhase = (name: string, phase: string) =>
    cluster.api.mergePatch(pods, at(name), { status: { phase } }, { subresource: 'status' });
  const phase = async (name: string) => (await cluster.api.get(shadowPods, at(name)))?.status?.phase;
  const kill = (name: string) => cluster.api.delete(pods, at(name), { gracePeriodSeconds: 0 });
  const events = () => cluster.api.getPath('/apis/events.k8s.io/v1/namespaces/demo-cons/events');

  test('B015 become pods of the same name with their labels and annotations, owned by them', async () => {
    const { metadata } = await shadow('web');
    const { metadata: found } = await made('web');
    expect(found.labels).toEqual({ 'offloading.liqo.io/origin': 'cons', 'liqo.io/managed-by': 'shadowpod' });
    expect(found.annotations).toMatchObject({ note: 'mine' });
    expect(found.ownerReferences).toMatchObject([
      { kind: 'ShadowPod', name: 'web', uid: metadata.uid, controller: true },
    ]);
    await until(async () => expect(await phase('web')).toBe('Pending'));
    await setPhase('web', 'Running');
    await until(async () => expect(await phase('web')).toBe('Running'));
  });

  test('carry over changed labels, annotations, images and accepted tolerations, and leave alone what others added', async () => {
    await cluster.api.mergePatch(pods, at('web'), { metadata: { labels: { injected: 'yes' } } });
    const toleration = { key: 'gpu', operator: 'Exists', effect: 'NoSchedule' };
    await cluster.api.mergePatch(shadowPods, at('web'), {
      metadata: { labels: { tier: 'front' }, annotations: { note: null, hint: 'new' } },
      spec: { pod: spec('app:2', { tolerations: [{ ...toleration, key: 'reserved' }, toleration] }) },
    });
    await acceptGuests(cluster.api, { tolerations: ['gpu'] });
    await until(async () => {
      const found = await pod('web');
      expect(found?.metadata.labels).toMatchObject({ tier: 'front', injected: 'yes' });
      expect(found?.metadata.annotations).toMatchObject({ hint: 'new' });
      expect(found?.metadata.annotations).not.toHaveProperty('note');
      expect(found?.spec?.containers[0]?.image).toBe('app:2');
      expect(found?.spec?.tolerations?.filter(({ effect }) => effect === 'NoSchedule')).toEqual([toleration]);
    });
    await cluster.api.mergePatch(shadowPods, at('web'), { metadata: { labels: { tier: null } } });
    await until(async () => expect((await pod('web'))?.metadata.labels).not.toHaveProperty('tier'));
  });

  test('get a new pod when theirs is deleted here, also while no agent runs', async () => {
    const first = (await pod('web'))?.metadata.uid;
    await kill('web');
    const second = await until(async () => {
      const uid = (await made('web')).metadata.uid;
      expect(uid).not.toBe(first);
      return uid;
    });
    await running.stop();
    await kill('web');
    await until(async () => expect(await pod('web')).toBeUndefined());
    running = startControllers(cluster);
    await until(async () => expect((await made('web')).metadata.uid).not.toBe(second));
  });

  test('get no new pod once it has finished', async () => {
    await shadow('job', spec('app:1', { restartPolicy: 'Never' }));
    await made('job');
    await setPhase('job', 'Succeeded');
    await until(async () => expect(await phase('job')).toBe('Succeeded'));
    await kill('job');
    await until(async () => expect(await pod('job')).toBeUndefined());
    await shadow('marker');
    await made('marker');
    expect(await pod('job')).toBeUndefined();
  });

  test('take their pod along when they go', async () => {
    await cluster.api.delete(shadowPods, at('marker'));
    await until(async () => expect(await pod('marker')).toBeUndefined());
  });

  test('recreated under the same name replace the pod of the old one', async () => {
    const old = (await made('web')).metadata.uid;
    await running.stop();
    await cluster.api.delete(shadowPods, at('web'), { propagationPolicy: 'Orphan' });
    await until(async () => expect(await cluster.api.get(shadowPods, at('web'))).toBeUndefined());
    await shadow('web', spec('app:3'));
    running = startControllers(cluster);
    await until(async () => {
      const found = await made('web');
      expect(found.metadata.uid).not.toBe(old);
      expect(found.spec?.containers[0]?.image).toBe('app:3');
    });
  });

  test('B129 never touch a pod that was not made for them', async () => {
    const theirs = await cluster.api.create(pods, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: at('neighbour'),
      spec: { containers: [{ name: 'x', image: 'x' }] },
    });
    await shadow('neighbour');
    await until(async () =>
      expect(await events()).toMatch(/pod named neighbour exists here and was not made for this ShadowPod/),
    );
    await cluster.api.delete(shadowPods, at('neighbour'));
    await shadow('marker');
    await made('marker');
    const after = await pod('neighbour');
    expect([after?.metadata.uid, after?.metadata.labels, after?.metadata.deletionTimestamp]).toEqual([
      theirs.metadata.uid,
      undefined,
      undefined,
    ]);
  });

  test('B073 that several admission servers let in together get pods only as far as the quota holds', async () => {
    await cluster.api.create(quotas, {
      apiVersion,
      kind: 'Quota',
      metadata: { namespace: 'liqo-tenant-cons', name: 'q' },
      spec: { user: 'slice', resources: { pods: '2' } },
    });
    const labels = { 'offloading.liqo.io/origin': 'cons', 'liqo.io/creator-user': 'slice' };
    const names = ['q1', 'q2', 'q3', 'q4'];
    await Promise.all(names.map((name) => shadow(name, spec(), labels)));
    const withPods = async () => (await Promise.all(names.map(pod))).flatMap((found) => found?.metadata.name ?? []);
    await until(async () => expect((await events()).match(/quota of slice exceeded: pods/g)?.length).toBe(2));
    // Those that are refused may hear of it before the others have their pods.
    const first = await until(async () => {
      const found = await withPods();
      expect(found).toHaveLength(2);
      return found;
    });
    await cluster.api.delete(shadowPods, at(first[0] ?? ''));
    await until(async () => expect((await withPods()).filter((name) => !first.includes(name))).toHaveLength(1));
    for (const name of names) await cluster.api.delete(shadowPods, at(name));
  });

  test('without the origin of the namespace come to nothing', async () => {
    await shadow('stranger', spec(), { 'offloading.liqo.io/origin': 'other-cluster' });
    await until(async () => expect(await events()).toMatch(/is other-cluster, but the namespace is that of cons/));
    expect(await pod('stranger')).toBeUndefined();
  });
});

describe('the end of an offloading', () => {
  test('B030 comes in order: label, mapping, remote namespace, finalizer', async () => {
    await cluster.api.delete(namespaceOffloadings, { namespace: 'demo', name: 'offloading' });
    await until(async () => expect((await map(original)).spec?.desiredMapping ?? {}).toEqual({}));
    await until(async () => expect((await offloading('demo'))?.status?.offloadingPhase).toBe('Terminating'));
    expect((await namespace('demo'))?.metadata.labels).not.toHaveProperty('liqo.io/scheduling-enabled');
    await replicate();
    await until(async () => expect(await namespace('demo-cons')).toBeUndefined());
    expect(await offloading('demo')).toBeDefined();
    await until(async () => expect((await map(replica)).status?.currentMapping ?? {}).toEqual({}));
    await bringStatusBack();
    await until(async () => expect(await offloading('demo')).toBeUndefined());
  });

  test('does not wait for a provider that was declared dead', async () => {
    await makeNamespace('stuck');
    await offload('stuck');
    await until(async () => expect((await map(original)).spec?.desiredMapping).toHaveProperty('stuck'));
    const status = { currentMapping: { stuck: { remoteNamespace: 'stuck-cons', phase: 'Accepted' as const } } };
    await until(async () =>
      cluster.api.update(namespaceMaps, { ...(await map(original)), status }, { subresource: 'status' }),
    );
    await cluster.api.delete(namespaces, { name: 'stuck' });
    await until(async () => expect((await offloading('stuck'))?.status?.offloadingPhase).toBe('Terminating'));
    await cluster.api.create(foreignClusters, {
      apiVersion: 'core.liqo.io/v1beta1',
      kind: 'ForeignCluster',
      metadata: { name: 'prov', annotations: { 'liqo.io/foreign-cluster-permanently-unreachable': 'true' } },
      spec: { clusterID: 'prov' },
    });
    await until(async () => expect(await namespace('stuck')).toBeUndefined());
  });
});
