/** What a provider's administrator sets and sees about guests, against a real API server with admission. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Cluster, KubeApi } from '#kube/model/types.ts';
import { clusterRoles, nodes, pods, serviceAccounts } from '#shared/domain/core-kinds.ts';
import type { KubeObject, Node, ResourceType } from '#shared/domain/kube-object.ts';
import { remoteRoles } from '#shared/domain/remote-roles.ts';
import { peeringPolicies } from '#shared/schema/isthmus/peering-policy.ts';
import { namespaceMaps } from '#shared/schema/liqo/namespace-map.ts';
import { quotas } from '#shared/schema/liqo/quota.ts';
import { type ShadowPod, shadowPods } from '#shared/schema/liqo/shadow-pod.ts';
import { inOrder } from '#test/harness/in-order.ts';
import { deps, offloadingApi, startWebhookCluster, until, type WebhookCluster } from '#test/harness/webhook-cluster.ts';
import { createQuotaUsageController } from './quota/usage-controller.ts';
import { createNodeFailureController } from './shadow-pods/node-failure-controller.ts';

let under: WebhookCluster;
let cluster: Cluster;
let api: KubeApi;
const stop = new AbortController();
let running: Promise<unknown>;

const limitRanges: ResourceType<KubeObject & { spec?: unknown }> = {
  group: '',
  version: 'v1',
  kind: 'LimitRange',
  plural: 'limitranges',
  namespaced: true,
};
const resourceQuotas: ResourceType<KubeObject & { spec?: { hard?: object }; status?: { hard?: unknown } }> = {
  group: '',
  version: 'v1',
  kind: 'ResourceQuota',
  plural: 'resourcequotas',
  namespaced: true,
};
const networkPolicies: ResourceType<KubeObject & { spec?: unknown }> = {
  group: 'networking.k8s.io',
  version: 'v1',
  kind: 'NetworkPolicy',
  plural: 'networkpolicies',
  namespaced: true,
};
const inApps = (name: string) => ({ namespace: 'apps-cons', name });
const as = ['--as=slice-1', '--as-group=cons', '--as-group=system:authenticated'];
const make = async (name: string, cpu: string): Promise<void> => {
  const metadata = { namespace: 'apps-cons', name, labels: { 'offloading.liqo.io/origin': 'cons' } };
  const containers = [{ name: 'app', image: 'app:1', resources: { requests: { cpu }, limits: { cpu } } }];
  const object = { apiVersion: offloadingApi, kind: 'ShadowPod', metadata, spec: { pod: { containers } } };
  expect(await under.create(object, ...as)).toContain('created');
};
const shadow = async (name: string): Promise<ShadowPod | undefined> => api.get(shadowPods, inApps(name));

// In this order: each test finds what the ones before it left.
inOrder('file');
beforeAll(async () => {
  under = await startWebhookCluster();
  cluster = under.cluster;
  api = cluster.api;
  for (const role of remoteRoles()) await api.create(clusterRoles, role);
  const quotaUsage = createQuotaUsageController({ ...deps, cluster });
  const nodeFailure = createNodeFailureController({ ...deps, cluster, delayMs: 200 });
  running = Promise.all([quotaUsage, nodeFailure].map((controller) => controller.run(stop.signal)));
  const labels = { 'liqo.io/replicated': 'true', 'liqo.io/originID': 'cons', 'liqo.io/remote-cluster-id': 'cons' };
  await api.create(namespaceMaps, {
    apiVersion: offloadingApi,
    kind: 'NamespaceMap',
    metadata: { namespace: 'liqo-tenant-cons', name: 'here', labels },
    spec: { desiredMapping: { apps: 'apps-cons' } },
  });
  await api.create(quotas, {
    apiVersion: offloadingApi,
    kind: 'Quota',
    metadata: { namespace: 'liqo-tenant-cons', name: 'slice-1' },
    spec: { user: 'slice-1', limitsEnforcement: 'None', resources: { cpu: '8', pods: '10' } },
  });
  await until(async () => expect(await api.get(serviceAccounts, inApps('default'))).toBeDefined());
  await until(async () =>
    expect(await under.kubectl(['-n', 'apps-cons', 'auth', 'can-i', 'create', 'shadowpods', ...as])).toBe('yes'),
  );
}, 900_000);
afterAll(async () => {
  stop.abort();
  await running;
  await under?.stop();
});

test('a PeeringPolicy keeps its LimitRange, NetworkPolicy and ResourceQuota in the namespaces of consumers, in the place of the safe ones', async () => {
  const policy = (defaults: object) => ({
    apiVersion: 'isthmus.dev/v1alpha1',
    kind: 'PeeringPolicy',
    metadata: { name: 'guests' },
    spec: { asProvider: { namespaceDefaults: defaults } },
  });
  await api.create(
    peeringPolicies,
    policy({
      limitRange: { limits: [{ type: 'Container', max: { cpu: '1' } }] },
      networkPolicy: { podSelector: {}, policyTypes: ['Ingress'] },
      resourceQuota: { hard: { 'count/secrets': '1' } },
    }) as never,
  );
  const limit = () => api.get(limitRanges, inApps('isthmus-default'));
  await until(async () => expect((await limit())?.spec).toMatchObject({ limits: [{ max: { cpu: '1' } }] }));
  await until(async () => expect(await api.get(networkPolicies, inApps('isthmus-default'))).toBeDefined());
  await api.delete(limitRanges, inApps('isthmus-default'));
  await until(async () => expect(await limit()).toBeDefined());
  const secret = (name: string) => ['-n', 'apps-cons', 'create', 'secret', 'generic', name, ...as];
  await until(async () =>
    expect((await api.get(resourceQuotas, inApps('isthmus-default')))?.status?.hard).toBeDefined(),
  );
  // Admission of the API server hears of either a moment after it is stored.
  await until(async () => expect(await under.kubectl(secret('first'))).toContain('created'));
  await until(async () =>
    expect(await under.kubectl([...secret('second'), '--dry-run=server'])).toContain('exceeded quota'),
  );
  expect(await under.kubectl(secret('second'))).toContain('exceeded quota: isthmus-default');
  const containers = [{ name: 'app', image: 'app:1', resources: { limits: { cpu: '2' } } }];
  const large = { apiVersion: 'v1', kind: 'Pod', metadata: inApps('large'), spec: { containers } };
  await until(async () =>
    expect(await under.create(large, '--dry-run=server')).toMatch(/maximum cpu usage per Container is 1/),
  );
});

test('a ShadowPod whose pod is not accepted says why in its status, and no more once the pod is there', async () => {
  await make('greedy', '2');
  await until(async () =>
    expect((await shadow('greedy'))?.status).toMatchObject({
      phase: 'Unknown',
      reason: 'FailedCreatePod',
      message: expect.stringMatching(/maximum cpu usage per Container is 1/),
    }),
  );
  await api.delete(peeringPolicies, { name: 'guests' });
  await until(async () => expect(await api.get(limitRanges, inApps('isthmus-default'))).toBeUndefined());
  const hard = { persistentvolumeclaims: '20', 'requests.storage': '200Gi' };
  await until(async () =>
    expect((await api.get(resourceQuotas, inApps('isthmus-default')))?.spec?.hard).toMatchObject(hard),
  );
  expect((await api.get(resourceQuotas, inApps('isthmus-default')))?.spec?.hard).not.toHaveProperty('count/secrets');
  await until(async () =>
    expect((await api.get(networkPolicies, inApps('isthmus-default')))?.spec).toMatchObject({
      policyTypes: ['Ingress', 'Egress'],
    }),
  );
  // By itself the controller looks again after half a minute, and what admission of the API server knows may be older than what is stored.
  let looks = 0;
  await until(async () => {
    const look = ['annotate', '--overwrite', 'shadowpod', 'greedy', `look=${looks++}`];
    expect(await under.kubectl(['-n', 'apps-cons', ...look, ...as])).toContain('annotated');
    expect(await api.get(pods, inApps('greedy'))).toBeDefined();
  });
  await until(async () => {
    const { reason, message } = (await shadow('greedy'))?.status ?? {};
    expect([reason, message]).toEqual([undefined, undefined]);
  });
});

test('a Quota shows what its user takes and what is free, and what ended is free again', async () => {
  const status = async () => (await api.get(quotas, { namespace: 'liqo-tenant-cons', name: 'slice-1' }))?.status;
  await until(async () =>
    expect(await status()).toEqual({ used: { cpu: '2', pods: '1' }, free: { cpu: '6', pods: '9' } }),
  );
  await api.mergePatch(pods, inApps('greedy'), { status: { phase: 'Failed' } }, { subresource: 'status' });
  await until(async () => expect((await status())?.used).toEqual({ cpu: '0', pods: '0' }));
});

test('a pod that is being deleted on a dead node is deleted by force, and its ShadowPod gets another', async () => {
  const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'dead' } } as Node;
  await api.create(nodes, node);
  await make('web', '100m');
  const first = await until(async () => {
    const found = await api.get(pods, inApps('web'));
    expect(found).toBeDefined();
    return found;
  });
  const binding = {
    apiVersion: 'v1',
    kind: 'Binding',
    metadata: inApps('web'),
    target: { kind: 'Node', name: 'dead' },
  };
  await api.post(pods, inApps('web'), 'binding', binding);
  await api.delete(pods, inApps('web'), { gracePeriodSeconds: 1 });
  const at = new Date().toISOString().replace(/\.\d+Z$/, 'Z');
  const conditions = [{ type: 'Ready', status: 'Unknown', lastHeartbeatTime: at, lastTransitionTime: at }];
  await api.mergePatch(nodes, { name: 'dead' }, { status: { conditions } }, { subresource: 'status' });
  await until(async () => {
    const second = await api.get(pods, inApps('web'));
    expect(second?.metadata.uid).toBeDefined();
    expect(second?.metadata.uid).not.toBe(first?.metadata.uid);
  });
});
