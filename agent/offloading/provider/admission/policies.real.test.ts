/** What PeeringPolicies keep out, as the API server asks and kubectl shows. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Cluster } from '#kube/model/types.ts';
import { configMaps, roleBindings, roles } from '#shared/domain/core-kinds.ts';
import { peeringPolicies } from '#shared/schema/isthmus/peering-policy.ts';
import { inOrder } from '#test/harness/in-order.ts';
import { offloadingApi, startWebhookCluster, until, type WebhookCluster } from '#test/harness/webhook-cluster.ts';

const slice = ['--as=slice-1', '--as-group=cons', '--as-group=system:authenticated'];

let under: WebhookCluster;
let cluster: Cluster;
let { kubectl, create }: Pick<WebhookCluster, 'kubectl' | 'create'> = {} as WebhookCluster;
// In this order: the second test goes on with the policy of the first.
inOrder('file');
beforeAll(async () => {
  under = await startWebhookCluster();
  ({ cluster, kubectl, create } = under);
  await under.makeNamespace('apps-cons', { 'liqo.io/remote-cluster-id': 'cons' });
}, 900_000);
afterAll(async () => await under?.stop());

test('a kind that the PeeringPolicy leaves out is refused to the consumer, and to no other writer', async () => {
  const map = (name: string) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace: 'apps-cons', name } });
  const own = { metadata: { namespace: 'apps-cons', name: 'own' } };
  await cluster.api.create(configMaps, { apiVersion: 'v1', kind: 'ConfigMap', ...own });
  await cluster.api.create(roles, {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'Role',
    metadata: { namespace: 'apps-cons', name: 'fills' },
    rules: [{ apiGroups: [''], resources: ['configmaps', 'secrets'], verbs: ['*'] }],
  });
  await cluster.api.create(roleBindings, {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'RoleBinding',
    metadata: { namespace: 'apps-cons', name: 'fills' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'fills' },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: 'cons' }],
  });
  await until(async () => expect(await create(map('before'), ...slice)).toMatch(/created/));
  await cluster.api.create(peeringPolicies, {
    apiVersion: 'isthmus.dev/v1alpha1',
    kind: 'PeeringPolicy',
    metadata: { name: 'narrow' },
    spec: {
      tenants: ['*'],
      asProvider: {
        enabled: true,
        autoAccept: true,
        peers: ['*'],
        maxResourcesPerPeer: {},
        classes: ['default'],
        sharePercent: 90,
        elastic: false,
      },
      reflectedKinds: ['secret'],
    },
  });
  await until(async () =>
    expect(await create(map('refused'), '--dry-run=server', ...slice)).toMatch(
      /kind is ConfigMap \(configmap\).*accept spec.reflectedKinds secret of cons.*\(policy_refused\)/,
    ),
  );
  expect(await create({ ...map('token'), kind: 'Secret' }, ...slice)).toMatch(/created/);
  expect(await create(map('administrator'))).toMatch(/created/);
  const { apiVersion, kind } = map('');
  await cluster.api.apply(configMaps, { apiVersion, kind, ...own, data: { by: 'us' } }, { fieldManager: 'isthmus' });
  expect(await kubectl(['-n', 'apps-cons', 'delete', 'configmap', 'before', ...slice])).toMatch(/deleted/);
});

test('links and capacity that no PeeringPolicy allows are refused to every writer, an administrator included', async () => {
  // The policy of the test before this one is about the side of the provider alone.
  const labels = { 'liqo.io/remote-cluster-id': 'cons' };
  const metadata = { namespace: 'liqo-tenant-cons', name: 'cons', labels };
  const gateway = {
    apiVersion: 'networking.liqo.io/v1beta1',
    kind: 'GatewayServer',
    metadata,
    spec: { endpoint: { port: 51_840, serviceType: 'NodePort' } },
  };
  const configuration = {
    apiVersion: 'networking.liqo.io/v1beta1',
    kind: 'Configuration',
    metadata,
    spec: { remote: { cidr: { pod: ['10.9.0.0/16'], external: ['10.8.0.0/16'] } } },
  };
  const network = (of: object) =>
    cluster.api.mergePatch(peeringPolicies, { name: 'narrow' }, { spec: { network: of } });
  const dry = '--dry-run=server';
  await network({ enabled: false });
  await until(async () =>
    expect(await create(gateway, dry)).toMatch(
      /narrow has spec.network.enabled false: no links to cons.*\(policy_refused\)/,
    ),
  );
  expect(await create(configuration, dry)).toMatch(/no links to cons.*\(policy_refused\)/);
  await network({ enabled: true, remoteCidrs: ['10.9.0.0/16'] });
  await until(async () =>
    expect(await create(configuration, dry)).toMatch(
      /10.8.0.0\/16 is announced for cons; PeeringPolicy narrow accepts spec.network.remoteCidrs 10.9.0.0\/16.*\(policy_refused\)/,
    ),
  );
  await network({ enabled: true, remoteCidrs: [] });
  await until(async () => expect(await create(configuration, dry)).toMatch(/created/));
  const takes = {
    apiVersion: 'authentication.liqo.io/v1beta1',
    kind: 'ResourceSlice',
    metadata: { ...metadata, name: 'wanted' },
    spec: { providerClusterID: 'cons' },
  };
  expect(await create(takes, dry)).toMatch(
    /spec.asConsumer.enabled and cons or \* among its peers.*\(policy_refused\)/,
  );
  const node = {
    apiVersion: offloadingApi,
    kind: 'VirtualNode',
    metadata: { ...metadata, name: 'wanted' },
    spec: { clusterID: 'cons' },
  };
  expect(await create(node, dry)).toMatch(/spec.asConsumer.enabled.*\(policy_refused\)/);
  const asConsumer = { enabled: true, peers: ['cons'] };
  await cluster.api.mergePatch(peeringPolicies, { name: 'narrow' }, { spec: { asConsumer } });
  await until(async () => expect(await create(takes, dry)).toMatch(/created/));
  expect(await create(node, dry)).toMatch(/created/);
});
