/** Commands on slices, tenants and pods, against a real API server. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connectKubeconfig } from '#kube/http/kubeconfig.ts';
import type { Cluster } from '#kube/model/types.ts';
import { openCluster } from '#kube/open-cluster.ts';
import { namespaces, nodes, pods, serviceAccounts } from '#shared/domain/core-kinds.ts';
import type { Node, Pod } from '#shared/domain/kube-object.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { quotas } from '#shared/schema/liqo/quota.ts';
import { type ResourceSlice, resourceSlices } from '#shared/schema/liqo/resource-slice.ts';
import { tenants } from '#shared/schema/liqo/tenant.ts';
import { leaseApiServer } from '#test/harness/api-server-pool/lease.ts';
import { eventually } from '#test/harness/eventually.ts';
import type { ApiServer } from '#test/harness/kube-apiserver.ts';
import { isthmus, type Ran } from './captured-io.ts';

let server: ApiServer;
let cluster: Cluster;
const stop = new AbortController();
const run = (...args: string[]): Promise<Ran> => isthmus([...args, '--kubeconfig', server.kubeconfigPath], {});
const tenantNamespace = (id: string): string => `liqo-tenant-${id}`;
const slice = (consumer: string, name: string) =>
  cluster.api.get(resourceSlices, { namespace: tenantNamespace(consumer), name });

async function makeNamespace(name: string, labels: Record<string, string> = {}): Promise<void> {
  await cluster.api.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } });
}
async function makeGuest(consumer: string): Promise<void> {
  await makeNamespace(tenantNamespace(consumer), {
    'liqo.io/tenant-namespace': 'true',
    'liqo.io/remote-cluster-id': consumer,
  });
  const metadata = {
    namespace: tenantNamespace(consumer),
    name: consumer,
    labels: { 'liqo.io/remote-cluster-id': consumer },
  };
  await cluster.api.create(tenants, {
    apiVersion: 'authentication.liqo.io/v1beta1',
    kind: 'Tenant',
    metadata,
    spec: { clusterID: consumer, tenantCondition: 'Active', authzPolicy: 'KeysExchange' },
  } as never);
  await cluster.api.create(resourceSlices, {
    apiVersion: 'authentication.liqo.io/v1beta1',
    kind: 'ResourceSlice',
    metadata: {
      ...metadata,
      name: 'here',
      labels: { 'liqo.io/replicated': 'true', 'liqo.io/originID': consumer, 'liqo.io/remote-cluster-id': consumer },
    },
    spec: { class: 'default', consumerClusterID: consumer },
  });
}
const setSlice = (consumer: string, name: string, status: ResourceSlice['status']) =>
  cluster.api.mergePatch(
    resourceSlices,
    { namespace: tenantNamespace(consumer), name },
    { status },
    { subresource: 'status' },
  );

beforeAll(async () => {
  server = await leaseApiServer();
  const deps = { clock: systemClock, log: silentLog };
  cluster = openCluster(await connectKubeconfig(server.kubeconfig), deps, stop.signal);
  await makeGuest('rome');
  await makeGuest('turin');
  await makeNamespace('demo');
  await eventually('service account', () => cluster.api.get(serviceAccounts, { namespace: 'demo', name: 'default' }));
}, 900_000);
afterAll(async () => {
  stop.abort();
  await server?.stop();
});

test('a consumer is cordoned and let in again by its cluster ID', async () => {
  const condition = async () =>
    (await cluster.api.get(tenants, { namespace: tenantNamespace('rome'), name: 'rome' }))?.spec.tenantCondition;
  expect(await run('cordon', 'tenant', 'rome')).toMatchObject({
    code: 0,
    out: expect.stringContaining('rome is cordoned'),
  });
  expect(await condition()).toBe('Cordoned');
  expect(await run('uncordon', 'tenant', 'rome')).toMatchObject({ code: 0 });
  expect(await condition()).toBe('Active');
  expect(await run('cordon', 'tenant', 'paris')).toMatchObject({
    code: 4,
    err: expect.stringContaining('no consumer paris'),
  });
});

test('a slice that several consumers have needs --consumer, and only theirs is cordoned', async () => {
  expect((await run('cordon', 'slice', 'here')).err).toMatch(/several consumers.*rome, turin[\s\S]*--consumer/);
  expect((await run('cordon', 'slice', 'here', '--consumer', 'rome')).code).toBe(0);
  const cordon = async (consumer: string) => (await slice(consumer, 'here'))?.metadata.annotations?.['liqo.io/cordon'];
  expect([await cordon('rome'), await cordon('turin')]).toEqual(['true', undefined]);
  expect((await run('uncordon', 'slice', 'here', '--consumer', 'rome')).code).toBe(0);
  expect(await cordon('rome')).toBeUndefined();
});

test('a drain of a slice waits until its quota says that no pod is left, and names how many are when time is up', async () => {
  await cluster.api.create(quotas, {
    apiVersion: 'offloading.liqo.io/v1beta1',
    kind: 'Quota',
    metadata: {
      namespace: tenantNamespace('rome'),
      name: 'here-1',
      labels: { 'liqo.io/resourceslice-name': 'here', 'liqo.io/remote-cluster-id': 'rome' },
    },
    spec: { user: 'here-1', resources: { pods: '5' } },
  });
  const pods = (count: string) =>
    cluster.api.mergePatch(
      quotas,
      { namespace: tenantNamespace('rome'), name: 'here-1' },
      { status: { used: { pods: count } } },
      { subresource: 'status' },
    );
  await pods('3');
  const early = await run('drain', 'slice', 'here', '--consumer', 'rome', '--timeout', '1s');
  expect(early).toMatchObject({ code: 8, err: expect.stringContaining('still has 3 pods') });
  const until = (await slice('rome', 'here'))?.metadata.annotations?.['isthmus.dev/drain'] ?? '';
  expect(Date.parse(until)).toBeGreaterThan(Date.now() + 9 * 60_000);
  const draining = run('drain', 'slice', 'here', '--consumer', 'rome', '--force-after', 'never');
  await setSlice('rome', 'here', { conditions: [{ type: 'Resources', status: 'Denied' }] });
  await pods('0');
  expect(await draining).toMatchObject({ code: 0, out: 'slice here of rome is drained\n' });
  expect((await slice('rome', 'here'))?.metadata.annotations?.['isthmus.dev/drain']).toBe('true');
});

test('a slice is asked for; the answer of the provider, its numbers or its refusal, is printed', async () => {
  const made = run(
    'slice',
    'create',
    'turin-gpu',
    '--provider',
    'turin',
    '--cpu',
    '2',
    '--resource',
    'nvidia.com/gpu=1',
  );
  const asked = await eventually('the slice', () => slice('turin', 'turin-gpu'));
  expect(asked).toMatchObject({
    metadata: {
      labels: { 'liqo.io/replication': 'true', 'liqo.io/remoteID': 'turin' },
      annotations: { 'liqo.io/create-virtual-node': 'true' },
    },
    spec: { class: 'default', providerClusterID: 'turin', resources: { cpu: '2', 'nvidia.com/gpu': '1' } },
  });
  const accepted = (['Authentication', 'Resources'] as const).map((type) => ({ type, status: 'Accepted' as const }));
  await setSlice('turin', 'turin-gpu', { conditions: accepted, resources: { cpu: '2', memory: '4Gi' } });
  expect(await made).toMatchObject({ code: 0, out: 'turin grants slice turin-gpu: cpu 2, memory 4Gi\n' });
  const refused = run('slice', 'create', 'more', '--provider', 'turin', '--cpu', '99', '--no-virtual-node');
  await eventually('the slice', () => slice('turin', 'more'));
  const message = 'cpu: asked 99, left 2 of 8';
  await setSlice('turin', 'more', { conditions: [{ type: 'Resources', status: 'Denied', message }] });
  expect(await refused).toMatchObject({ err: expect.stringContaining(message) });
  expect((await run('slice', 'create', 'x', '--provider', 'paris')).err).toContain('not peered with paris');
});

test('slices of this cluster and of its guests are listed with role, grant and use', async () => {
  const { out } = await run('slice', 'list');
  expect(out).toMatch(/NAME +ROLE +PEER +CLASS +AUTHENTICATION +RESOURCES +GRANTED +USED/);
  expect(out).toMatch(/here +provider +rome +default +Pending +Denied +- +pods 0/);
  expect(out).toMatch(/turin-gpu +consumer +turin +default +Accepted +Accepted +cpu 2, memory 4Gi +-/);
});

test('a pod tells where it is, what it waits for and at which side', async () => {
  const node = {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: 'turin', labels: { 'liqo.io/type': 'virtual-node', 'liqo.io/remote-cluster-id': 'turin' } },
  } as Node;
  await cluster.api.create(nodes, node);
  const at = new Date().toISOString().replace(/\.\d+Z$/, 'Z');
  const ready = { type: 'Ready', status: 'True', lastHeartbeatTime: at, lastTransitionTime: at };
  await cluster.api.mergePatch(
    nodes,
    { name: 'turin' },
    { status: { conditions: [ready] } },
    { subresource: 'status' },
  );
  await cluster.api.create(pods, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { namespace: 'demo', name: 'web' },
    spec: {
      nodeName: 'turin',
      containers: [{ name: 'app', image: 'demo:1' }],
      tolerations: [{ operator: 'Exists' }],
    },
  } as Pod);
  const status = { phase: 'Pending', reason: 'OffloadingRefused', message: 'cluster turin refused the pod: no room' };
  await cluster.api.mergePatch(pods, { namespace: 'demo', name: 'web' }, { status }, { subresource: 'status' });
  const { out } = await run('describe', 'pod', 'demo/web');
  expect(out).toMatch(/Where: +cluster turin \(virtual node turin\)/);
  expect(out).toMatch(/Waits for: +cluster turin refused the pod: no room\nSide: +provider/);
  expect(JSON.parse((await run('describe', 'pod', 'demo/web', '-o', 'json')).out)).toMatchObject({ side: 'provider' });
  expect(await run('describe', 'pod', 'demo/nothing')).toMatchObject({ code: 4 });
  expect(await run('describe', 'pod', 'web')).toMatchObject({ code: 2 });
});
