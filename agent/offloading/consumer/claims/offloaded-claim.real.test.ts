/** Claims of classes that make volumes in this cluster only, when the scheduler selected a virtual node for them. */
import { type ChildProcess, spawn } from 'node:child_process';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connectKubeconfig } from '#kube/http/kubeconfig.ts';
import type { Cluster } from '#kube/model/types.ts';
import { openCluster } from '#kube/open-cluster.ts';
import {
  coreEvents,
  nodes,
  type PersistentVolumeClaim,
  persistentVolumeClaims,
  pods,
  serviceAccounts,
  storageClasses,
} from '#shared/domain/core-kinds.ts';
import type { Node, Pod } from '#shared/domain/kube-object.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { eventually } from '#test/harness/eventually.ts';
import { inOrder } from '#test/harness/in-order.ts';
import { startApiServer, type TestApiServer } from '#test/harness/kube-apiserver.ts';
import { createOffloadedClaimController } from './controller.ts';

const deps = { clock: systemClock, log: silentLog };
const selected = 'volume.kubernetes.io/selected-node';
/** As kube-controller-manager leaves it once a node is selected. */
const awaited = { 'volume.kubernetes.io/storage-provisioner': 'example.com/none' };
const end = new AbortController();
let server: TestApiServer;
let cluster: Cluster;
let running: Promise<void>;
let scheduler: ChildProcess;

// In this order: each test finds what the ones before it left.
inOrder('file');
beforeAll(async () => {
  server = await startApiServer();
  cluster = openCluster(await connectKubeconfig(server.kubeconfig), deps, end.signal);
  const virtual = { 'liqo.io/type': 'virtual-node', 'liqo.io/remote-cluster-id': 'prov' };
  await makeNode('vn1', virtual);
  await makeNode('worker', {});
  running = createOffloadedClaimController({ ...deps, cluster }).run(end.signal);
  const config = path.join(server.dir, 'scheduler.conf');
  const args = ['kube-scheduler', `--kubeconfig=${config}`, '--leader-elect=false', '--secure-port=0'];
  scheduler = spawn(server.kubebox, args, { stdio: 'ignore' });
}, 900_000);
afterAll(async () => {
  end.abort();
  await running;
  const ended = new Promise((resolve) => scheduler?.once('exit', resolve));
  if (scheduler?.kill('SIGKILL')) await ended;
  await server?.stop();
});

const makeNode = (name: string, labels: Record<string, string>) =>
  cluster.api.create(nodes, { apiVersion: 'v1', kind: 'Node', metadata: { name, labels } } as Node);
const makeClaim = (name: string, annotations: Record<string, string>) =>
  cluster.api.create(persistentVolumeClaims, {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { namespace: 'default', name, annotations },
    spec: { accessModes: ['ReadWriteOnce'], storageClassName: 'fast', resources: { requests: { storage: '1Gi' } } },
  } as PersistentVolumeClaim);
const claim = (name: string) => cluster.api.get(persistentVolumeClaims, { namespace: 'default', name });
const conditions = async (name: string) => (await claim(name))?.status?.conditions ?? [];
const patch = (name: string, body: unknown, subresource?: 'status') =>
  cluster.api.mergePatch(
    persistentVolumeClaims,
    { namespace: 'default', name },
    body,
    subresource ? { subresource } : {},
  );
const told = (name: string) =>
  eventually(`a condition of ${name}`, async () => (await conditions(name)).find(({ status }) => status === 'False'), {
    withinMs: 60_000,
  });
const silent = (name: string) =>
  eventually(`no condition of ${name}`, async () => (await conditions(name)).length === 0);

test('a claim that was to get its volume on a virtual node says in a condition and an event why it stays Pending, and what to do', async () => {
  await makeClaim('data', { [selected]: 'vn1', ...awaited });
  const said = await told('data');
  expect(said).toMatchObject({ type: 'isthmus.dev/Provisionable', reason: 'StorageNotOffloaded' });
  for (const part of ['node vn1', 'cluster prov', 'StorageClass fast', 'in this cluster only', 'liqo.io/storage'])
    expect(said.message).toContain(part);
  expect((await claim('data'))?.status?.phase).toBe('Pending');
  await eventually('the event', async () =>
    (await cluster.api.list(coreEvents, { namespace: 'default' })).find(
      ({ involvedObject, reason, type }) =>
        involvedObject.name === 'data' && reason === 'StorageNotOffloaded' && type === 'Warning',
    ),
  );
});

test('it says so no longer when its pod is to run in this cluster after all', async () => {
  await makeClaim('moves', { [selected]: 'vn1', ...awaited });
  await told('moves');
  await patch('moves', { metadata: { annotations: { [selected]: 'worker' } } });
  await silent('moves');
});

test('what others say about a claim stays, and so does a claim that has a volume or waits for one in this cluster', async () => {
  const resizing = { type: 'Resizing', status: 'True', lastTransitionTime: '2026-01-01T00:00:00Z' };
  await makeClaim('local', { [selected]: 'worker', ...awaited });
  await makeClaim('bound', { [selected]: 'vn1', ...awaited });
  await told('bound');
  const own = await conditions('bound');
  await patch('bound', { status: { phase: 'Bound', conditions: [...own, resizing] } }, 'status');
  await eventually('only what others say', async () => {
    const left = await conditions('bound');
    return left.length === 1 && left[0]?.type === 'Resizing';
  });
  expect(await conditions('local')).toEqual([]);
});

test('nothing is said before kube-controller-manager has written which provisioner the claim waits for', async () => {
  await makeClaim('fresh', { [selected]: 'vn1' });
  await makeClaim('later', { [selected]: 'vn1', ...awaited });
  await told('later');
  expect(await conditions('fresh')).toEqual([]);
  await patch('fresh', { metadata: { annotations: awaited } });
  expect((await told('fresh')).message).toContain('node vn1');
});

test('a node that turns out to be virtual counts from then on', async () => {
  await makeClaim('early', { [selected]: 'vn2', ...awaited });
  await makeNode('vn2', { 'liqo.io/type': 'virtual-node', 'liqo.io/remote-cluster-id': 'other' });
  expect((await told('early')).message).toContain('cluster other');
});

test('so it is when the scheduler itself chooses a virtual node for a pod and its claim', async () => {
  const { api } = cluster;
  await api.create(storageClasses, {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name: 'fast' },
    provisioner: 'example.com/none',
    volumeBindingMode: 'WaitForFirstConsumer',
  });
  const account = { namespace: 'default', name: 'default' };
  await api.create(serviceAccounts, { apiVersion: 'v1', kind: 'ServiceAccount', metadata: account });
  const room = { cpu: '4', memory: '8Gi', pods: '10' };
  const ready = { type: 'Ready', status: 'True', reason: 'KubeletReady', message: '' };
  const status = { capacity: room, allocatable: room, conditions: [ready] };
  await api.mergePatch(nodes, { name: 'vn1' }, { status }, { subresource: 'status' });
  await api.mergePatch(nodes, { name: 'vn1' }, { spec: { taints: null } });
  await makeClaim('chosen', awaited);
  await api.create(pods, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { namespace: 'default', name: 'user' },
    spec: {
      nodeSelector: { 'liqo.io/type': 'virtual-node' },
      containers: [{ name: 'app', image: 'app:1' }],
      volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'chosen' } }],
    },
  } as Pod);
  expect((await told('chosen')).message).toContain('node vn1');
  expect((await claim('chosen'))?.metadata.annotations?.[selected]).toBe('vn1');
});
