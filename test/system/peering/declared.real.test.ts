/** A peering from manifests alone: no nonce, no Identity, credentials made by an administrator. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { namespaces, roleBindings, secrets, serviceAccounts } from '#shared/domain/core-kinds.ts';
import { annotation, label } from '#shared/domain/liqo-keys.ts';
import { foreignClusters } from '#shared/schema/liqo/foreign-cluster.ts';
import { resourceSlices } from '#shared/schema/liqo/resource-slice.ts';
import { tenants } from '#shared/schema/liqo/tenant.ts';
import { virtualNodes } from '#shared/schema/liqo/virtual-node.ts';
import { eventually } from '#test/harness/eventually.ts';
import { inOrder } from '#test/harness/in-order.ts';
import { type Pair, startPair } from './clusters.ts';

let pair: Pair;
// In this order: each test finds what the ones before it left.
inOrder('file');
beforeAll(async () => {
  pair = await startPair();
}, 900_000);
afterAll(async () => await pair?.stop());

const namespace = (name: string, peer: string) => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name, labels: { [label.tenantNamespace]: 'true', [label.remoteClusterId]: peer } },
});
const [there, here] = ['peer-rome', 'peer-milan'];

async function kubeconfigOfAccount(): Promise<string> {
  const { api, server } = pair.provider;
  const ref = { namespace: there, name: 'rome' };
  await api.create(serviceAccounts, { apiVersion: 'v1', kind: 'ServiceAccount', metadata: ref });
  await api.create(roleBindings, {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'RoleBinding',
    metadata: {
      name: 'liqo-binding-liqo-remote-controlplane',
      namespace: there,
      labels: { [label.remoteClusterId]: 'rome' },
    },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'liqo-remote-controlplane' },
    subjects: [{ kind: 'ServiceAccount', ...ref }],
  });
  const request = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} };
  const { status } = await api.post<never, { status: { token: string } }>(
    serviceAccounts as never,
    ref,
    'token',
    request,
  );
  const cluster = { server: server.url, 'certificate-authority-data': Buffer.from(server.ca).toString('base64') };
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'c',
    clusters: [{ name: 'c', cluster }],
    users: [{ name: 'u', user: { token: status.token } }],
    contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
  });
}

test('manifests applied in the worst order become a virtual node', async () => {
  await pair.consumer.api.create(namespaces, namespace(here, 'milan'));
  await pair.consumer.api.create(resourceSlices, {
    apiVersion: 'authentication.liqo.io/v1beta1',
    kind: 'ResourceSlice',
    metadata: {
      name: 'pool',
      namespace: here,
      labels: { [label.replication]: 'true', [label.remoteId]: 'milan', [label.remoteClusterId]: 'milan' },
      annotations: { [annotation.createVirtualNode]: 'true' },
    },
    spec: { resources: { cpu: '1' } },
  });
  await pair.provider.api.create(namespaces, namespace(there, 'rome'));
  const kubeconfig = Buffer.from(await kubeconfigOfAccount()).toString('base64');
  await pair.consumer.api.create(secrets, {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: {
      name: 'cp-access',
      namespace: here,
      labels: { [label.identityType]: 'ControlPlane', [label.remoteClusterId]: 'milan' },
      annotations: { [annotation.remoteTenantNamespace]: there },
    },
    data: { kubeconfig },
  });
  await eventually('the copy to arrive', () =>
    pair.provider.api.get(resourceSlices, { namespace: there, name: 'pool' }),
  );
  await pair.provider.api.create(tenants, {
    apiVersion: 'authentication.liqo.io/v1beta1',
    kind: 'Tenant',
    metadata: { name: 'rome', namespace: there, labels: { [label.remoteClusterId]: 'rome' } },
    spec: { clusterID: 'rome', authzPolicy: 'TolerateNoHandshake', tenantCondition: 'Active' },
  });
  await eventually('the virtual node', () => pair.consumer.api.get(virtualNodes, { namespace: here, name: 'pool' }));
  await eventually('the summary', async () => {
    const foreign = await pair.consumer.api.get(foreignClusters, { name: 'milan' });
    expect(foreign?.status).toMatchObject({ role: 'Provider', apiServerUrl: pair.provider.server.url });
    return true;
  });
});

test("the administrator's binding is left alone, and everything ends", async () => {
  const { api } = pair.consumer;
  await api.delete(resourceSlices, { namespace: here, name: 'pool' });
  await eventually('the copy to go', async () => (await pair.provider.api.list(resourceSlices)).length === 0);
  await api.delete(secrets, { namespace: here, name: 'cp-access' });
  await eventually(
    'the credentials to be released',
    async () => (await api.get(secrets, { namespace: here, name: 'cp-access' })) === undefined,
  );
  await eventually('no summary', async () => (await api.list(foreignClusters)).length === 0);
  await pair.provider.api.delete(tenants, { namespace: there, name: 'rome' });
  await eventually('the Tenant to go', async () => (await pair.provider.api.list(tenants)).length === 0);
  const bindings = await pair.provider.api.list(roleBindings, { namespace: there });
  // The namespace is the administrator's and stays, and as long as it is labelled for a tenant the agent keeps its own rights there.
  expect(bindings.map(({ metadata }) => metadata.name).sort()).toEqual([
    'isthmus-agent-tenant',
    'liqo-binding-liqo-remote-controlplane',
  ]);
});

test('the tenant namespace of either side lets gateways run where a cluster holds namespaces to a standard', async () => {
  const labelled = (api: Pair['consumer']['api'], name: string) =>
    eventually('the label', async () => {
      const namespace = await api.get(namespaces, { name });
      return namespace?.metadata.labels?.['pod-security.kubernetes.io/enforce'];
    });
  expect(await labelled(pair.consumer.api, here)).toBe('privileged');
  expect(await labelled(pair.provider.api, there)).toBe('privileged');
});
