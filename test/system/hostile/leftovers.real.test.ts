/** A consumer that wants more of its objects to stay at its provider than their limits say: several maps, and owners that go without what they own. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createQuotaController } from '#agent/offloading/provider/quota/controller.ts';
import type { PeeringDeps } from '#agent/peering/model/deps.ts';
import type { KubeApi } from '#kube/model/types.ts';
import { clusterRoles, endpointSlices, namespaces } from '#shared/domain/core-kinds.ts';
import type { KubeObject, ResourceType } from '#shared/domain/kube-object.ts';
import { remoteRoles } from '#shared/domain/remote-roles.ts';
import { namespaceMaps } from '#shared/schema/liqo/namespace-map.ts';
import { quotas } from '#shared/schema/liqo/quota.ts';
import { renews } from '#shared/schema/liqo/renew.ts';
import { type ResourceSlice, resourceSlices } from '#shared/schema/liqo/resource-slice.ts';
import { type ShadowEndpointSlice, shadowEndpointSlices } from '#shared/schema/liqo/shadow-endpoint-slice.ts';
import { acceptGuests } from '#test/harness/guest-policy.ts';
import { deps, offloadingApi, startWebhookCluster, until, type WebhookCluster } from '#test/harness/webhook-cluster.ts';
import { made } from './attempt.ts';
import { guest, identity, origin } from './hosted-consumers.ts';

const tenant = 'liqo-tenant-cons';
let under: WebhookCluster;
let admin: KubeApi;
let kubelet: KubeApi;
let controlPlane: KubeApi;
const stop = new AbortController();
let ended: Promise<void> = Promise.resolve();

beforeAll(async () => {
  under = await startWebhookCluster();
  admin = under.cluster.api;
  for (const role of remoteRoles()) await admin.create(clusterRoles, role);
  await guest(under, { consumer: 'cons', slice: 'slice-cons', resources: { cpu: '2', memory: '2Gi', pods: '5' } });
  kubelet = await identity(under, ['slice-cons', 'cons'], stop.signal);
  controlPlane = await identity(under, ['cons', 'liqo.io'], stop.signal);
  await until(() => kubelet.list(shadowEndpointSlices, { namespace: 'apps-cons' }));
  await until(() => controlPlane.list(namespaceMaps, { namespace: tenant }));
  ended = createQuotaController({ ...deps, cluster: under.cluster } as PeeringDeps).run(stop.signal);
}, 900_000);
afterAll(async () => {
  stop.abort();
  await ended;
  await under?.stop();
});

const copy = (name: string): KubeObject['metadata'] => ({
  namespace: tenant,
  name,
  labels: {
    'liqo.io/replicated': 'true',
    'liqo.io/replication': 'false',
    'liqo.io/originID': 'cons',
    'liqo.io/remote-cluster-id': 'cons',
  },
});

test('has no more namespaces by three maps than by one', async () => {
  await acceptGuests(admin, { maxNamespaces: 4 });
  const maps = ['one', 'two', 'three'];
  await Promise.all(
    maps.map((name) =>
      until(() =>
        controlPlane.create(namespaceMaps, {
          apiVersion: offloadingApi,
          kind: 'NamespaceMap',
          metadata: copy(name),
          spec: { desiredMapping: { a: `a-${name}-cons`, b: `b-${name}-cons`, c: `c-${name}-cons` } },
        }),
      ),
    ),
  );
  const phases = await until(async () => {
    const found = await Promise.all(maps.map((name) => admin.get(namespaceMaps, { namespace: tenant, name })));
    const all = found.flatMap((map) => Object.values(map?.status?.currentMapping ?? {}).map(({ phase }) => phase));
    expect(all).toHaveLength(9);
    return all;
  });
  // `apps-cons` is the fourth.
  expect(phases.filter((phase) => phase === 'Accepted')).toHaveLength(3);
  const made = await admin.list(namespaces, {
    labelSelector: 'liqo.io/remote-cluster-id=cons,!liqo.io/tenant-namespace',
  });
  expect(made).toHaveLength(4);
}, 120_000);

test.each([
  { type: renews as ResourceType, spec: { consumerClusterID: 'cons', identityType: 'ControlPlane' } },
  { type: resourceSlices as ResourceType, spec: { class: 'of-nobody', consumerClusterID: 'cons' } },
])(
  'has a hundred copies of kind $type.kind at most',
  async ({ type, spec }) => {
    const { length } = await admin.list(type, { namespace: tenant });
    for (let i = length; i < 100; i += 1)
      await controlPlane.create(type, { ...made(type, tenant, `many-${i}`, { spec }), metadata: copy(`many-${i}`) });
    const one = { ...made(type, tenant, 'more', { spec }), metadata: copy('one-more') };
    await expect(controlPlane.create(type, one)).rejects.toThrow(/accepted of one consumer are 100 \(quota_exceeded\)/);
    for (let i = length; i < 100; i += 1) await controlPlane.delete(type, { namespace: tenant, name: `many-${i}` });
  },
  120_000,
);

test('has no Quota any more when its slice goes and leaves behind what it owns', async () => {
  const created = await admin.create<ResourceSlice>(resourceSlices, {
    apiVersion: 'authentication.liqo.io/v1beta1',
    kind: 'ResourceSlice',
    metadata: copy('more'),
    spec: { class: 'default', consumerClusterID: 'cons' },
  } as ResourceSlice);
  const lastTransitionTime = new Date().toISOString();
  const condition = { type: 'Resources', status: 'Accepted', reason: 'Test', message: '', lastTransitionTime };
  const status = { resources: { cpu: '1', memory: '1Gi', pods: '1' }, conditions: [condition] };
  await admin.mergePatch(resourceSlices, { namespace: tenant, name: 'more' }, { status }, { subresource: 'status' });
  const ofSlice = async () =>
    (await admin.list(quotas, { namespace: tenant })).filter(
      ({ metadata }) => metadata.labels?.['liqo.io/resourceslice-name'] === 'more',
    );
  await until(async () => expect(await ofSlice()).toHaveLength(1));
  const options = { propagationPolicy: 'Orphan', uid: created.metadata.uid ?? '' } as const;
  await admin.delete(resourceSlices, { namespace: tenant, name: 'more' }, options);
  await until(async () => expect(await admin.get(resourceSlices, { namespace: tenant, name: 'more' })).toBeUndefined());
  await until(async () => expect(await ofSlice()).toEqual([]));
}, 120_000);

test('has no endpoints any more when what they were made of goes and leaves them behind', async () => {
  const at = { namespace: 'apps-cons', name: 'web' };
  await until(() =>
    kubelet.create(shadowEndpointSlices, {
      apiVersion: offloadingApi,
      kind: 'ShadowEndpointSlice',
      metadata: { ...at, labels: { ...origin('cons'), 'kubernetes.io/service-name': 'web' } },
      spec: { template: { addressType: 'IPv4', endpoints: [], ports: [] } },
    } as unknown as ShadowEndpointSlice),
  );
  await until(async () => expect(await admin.get(endpointSlices, at)).toBeDefined());
  await kubelet.delete(shadowEndpointSlices, at, { propagationPolicy: 'Orphan' });
  await until(async () => expect(await admin.get(shadowEndpointSlices, at)).toBeUndefined());
  await until(async () => expect(await admin.get(endpointSlices, at)).toBeUndefined());
}, 120_000);
