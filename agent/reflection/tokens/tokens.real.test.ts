import { afterAll, beforeAll, expect, test } from 'vitest';
import { configMaps, namespaces, pods, secrets } from '#shared/domain/core-kinds.ts';
import type { Pod, Secret } from '#shared/domain/kube-object.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import { shadowPods } from '#shared/schema/liqo/shadow-pod.ts';
import { eventually } from '#test/harness/eventually.ts';
import {
  boundPod,
  createVirtualNode,
  mapNamespaces,
  type OffloadingClusters,
  tenantNamespace,
} from '#test/harness/offloading-clusters.ts';
import { type Running, sidesOf, startConsumer, startReflectionClusters } from '#test/harness/reflection-clusters.ts';

let world: OffloadingClusters;
let agent: Running;
let sides: ReturnType<typeof sidesOf>;
let aheadMs = 0;
const clock = { ...systemClock, now: () => systemClock.now() + aheadMs, sleep: systemClock.sleep };

beforeAll(async () => {
  world = await startReflectionClusters();
  sides = sidesOf(world);
  const { api } = world.consumer;
  const labels = { 'ipam.liqo.io/ip-type': 'api-server' };
  await api.create(networkKinds.ips, {
    apiVersion: 'ipam.liqo.io/v1alpha1',
    kind: 'IP',
    metadata: { namespace: 'liqo', name: 'api-server', labels },
    spec: { ip: '10.96.0.1' },
  } as never);
  const status = { ip: '10.70.0.1', cidr: '10.70.0.0/16' };
  await api.mergePatch(
    networkKinds.ips,
    { namespace: 'liqo', name: 'api-server' },
    { status },
    { subresource: 'status' },
  );
  const cidr = { pod: ['10.20.0.0/16'], external: ['10.71.0.0/16'] };
  await api.create(networkKinds.configurations, {
    apiVersion: 'networking.liqo.io/v1beta1',
    kind: 'Configuration',
    metadata: { namespace: tenantNamespace, name: 'prov', labels: { 'liqo.io/remote-cluster-id': 'prov' } },
    spec: { remote: { cidr } },
  } as never);
  agent = startConsumer(world, { clock });
  await createVirtualNode(world, 'vn1');
  await mapNamespaces(world, ['demo']);
}, 900_000);
afterAll(async () => {
  await agent?.stop();
  await world?.stop();
});

const offload = (
  name: string,
  annotations: Record<string, string> = {},
  spec: Record<string, unknown> = {},
): Promise<Pod> => {
  const pod = boundPod('demo', name, 'vn1', { initContainers: [{ name: 'init', image: 'demo:1' }], ...spec });
  return world.consumer.api.create(pods, { ...pod, metadata: { ...pod.metadata, annotations } });
};
const token = (secret: Secret): string => Buffer.from(Object.values(secret.data ?? {})[0] ?? '', 'base64').toString();
const expiry = ({ metadata }: Secret): number =>
  Date.parse(metadata.annotations?.['offloading.liqo.io/service-account-expiration'] ?? '');

test('B027, B028, B090: a pod gets tokens of its own cluster, the way to its API server, and the root CA to trust it', async () => {
  const local = await offload('web');
  const secret = await sides.arrived(secrets, 'web-token');
  const shadow = await sides.arrived(shadowPods, 'web');
  const [volume] = shadow.spec.pod.volumes ?? [];
  expect(volume?.name).toMatch(/^kube-api-access-/);
  const [key = ''] = Object.keys(secret.data ?? {});
  expect(key).toMatch(new RegExp(`^${volume?.name}-[0-9a-f]{6}$`));
  expect(volume?.projected?.sources).toEqual([
    { secret: { name: 'web-token', items: [{ key, path: 'token' }] } },
    { configMap: { name: 'kube-root-ca.crt.cons', items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
    {
      downwardAPI: {
        items: [
          {
            path: 'namespace',
            fieldRef: { apiVersion: 'v1', fieldPath: "metadata.annotations['isthmus.dev/local-namespace']" },
          },
        ],
      },
    },
  ]);
  await sides.arrived(configMaps, 'kube-root-ca.crt.cons');
  for (const container of [...shadow.spec.pod.containers, ...(shadow.spec.pod.initContainers ?? [])]) {
    expect(container.env).toContainEqual({ name: 'KUBERNETES_SERVICE_HOST', value: 'kubernetes.default' });
    expect(container.env).toContainEqual({ name: 'KUBERNETES_SERVICE_PORT', value: '443' });
  }
  expect(shadow.spec.pod.hostAliases).toEqual([
    { ip: '10.70.0.1', hostnames: ['kubernetes.default', 'kubernetes.default.svc'] },
  ]);
  expect(secret).toMatchObject({
    type: 'Opaque',
    metadata: {
      labels: {
        'offloading.liqo.io/origin': 'cons',
        'offloading.liqo.io/destination': 'prov',
        'offloading.liqo.io/nodename': 'vn1',
        'offloading.liqo.io/service-account-name': 'default',
      },
      annotations: {
        'offloading.liqo.io/service-account-for-pod-name': 'web',
        'offloading.liqo.io/service-account-for-pod-uid': local.metadata.uid,
      },
    },
  });
  const review = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec: { token: token(secret) } };
  const { status } = await world.consumer.api.postPath<{ status: { user: { username: string } } }>(
    '/apis/authentication.k8s.io/v1/tokenreviews',
    review,
  );
  expect(status.user.username).toBe('system:serviceaccount:demo:default');
});

test('B089: a token is renewed when four fifths of its life have passed', async () => {
  const sources = [{ serviceAccountToken: { path: 'short', expirationSeconds: 600, audience: 'vault' } }];
  await offload(
    'short',
    {},
    { automountServiceAccountToken: false, volumes: [{ name: 'vault', projected: { sources } }] },
  );
  const first = await sides.arrived(secrets, 'short-token');
  const touch = () =>
    world.provider.api.mergePatch(
      secrets,
      { namespace: 'demo-cons', name: 'short-token' },
      { metadata: { labels: { touched: `${aheadMs}` } } },
    );
  // Four fifths are 480 s: what the machine takes from the first token to here is no part of it.
  aheadMs = 400_000;
  await touch();
  await sides.arrived(secrets, 'short-token', ({ metadata }) => metadata.labels?.touched === '400000');
  expect(expiry((await sides.there(secrets, 'short-token')) as Secret)).toBe(expiry(first));
  aheadMs = 485_000;
  const later = Date.now() + 1_500;
  await eventually('a token of now to expire later than the first one', () => Date.now() > later);
  await touch();
  const renewed = await sides.arrived(secrets, 'short-token', (secret) => token(secret) !== token(first));
  expect(expiry(renewed)).toBeGreaterThan(expiry(first));
  expect(renewed.metadata.uid).toBe(first.metadata.uid);
  aheadMs = 0;
});

test.each(['disabled', 'remote'])(
  'B086, B087, B088: with API access %s no token leaves the cluster',
  async (support) => {
    await offload(support, { 'liqo.io/api-server-support': support, 'liqo.io/remote-service-account-name': 'default' });
    const shadow = await sides.arrived(shadowPods, support);
    expect(JSON.stringify(shadow.spec.pod)).not.toContain('KUBERNETES_SERVICE_HOST');
    expect(JSON.stringify(shadow.spec.pod)).not.toContain(`${support}-token`);
    expect(shadow.spec.pod.serviceAccountName).toBe(support === 'remote' ? 'default' : undefined);
    await offload(`after-${support}`);
    await sides.arrived(secrets, `after-${support}-token`);
    expect(await sides.there(secrets, `${support}-token`)).toBeUndefined();
  },
);

test('tokens are restored when they are tampered with, belong to one incarnation of a pod, and go with it', async () => {
  const local = await offload('tidy', {}, { terminationGracePeriodSeconds: 0 });
  const first = await sides.arrived(secrets, 'tidy-token');
  const [key = ''] = Object.keys(first.data ?? {});
  await world.provider.api.mergePatch(
    secrets,
    { namespace: 'demo-cons', name: 'tidy-token' },
    { data: { [key]: 'eA==' } },
  );
  await sides.arrived(secrets, 'tidy-token', (secret) => token(secret).length > 100);
  await world.consumer.api.delete(pods, { namespace: 'demo', name: 'tidy' }, { gracePeriodSeconds: 0 });
  await sides.gone(secrets, 'tidy-token');
  const next = await offload('tidy');
  expect(next.metadata.uid).not.toBe(local.metadata.uid);
  await sides.arrived(
    secrets,
    'tidy-token',
    ({ metadata }) => metadata.annotations?.['offloading.liqo.io/service-account-for-pod-uid'] === next.metadata.uid,
  );
});

test("B040: a Secret of the provider's own in the place of tokens is left alone", async () => {
  const before = await sides.createThere(secrets, { metadata: { name: 'taken-token' }, data: { a: 'eA==' } });
  await offload('taken');
  expect((await sides.said('taken', 'FailedSATokensReflection')).message).toContain('demo-cons/taken-token');
  expect((await sides.there(secrets, 'taken-token'))?.metadata.resourceVersion).toBe(before.metadata.resourceVersion);
});

test('in a namespace where an administrator has switched them off, pods have no tokens, and those that were made go', async () => {
  const { api } = world.consumer;
  const set = (value: string | null) =>
    api.mergePatch(
      namespaces,
      { name: 'demo' },
      { metadata: { annotations: { 'isthmus.dev/api-server-tokens': value } } },
    );
  await offload('before');
  await sides.arrived(secrets, 'before-token');
  await set('disabled');
  await sides.gone(secrets, 'before-token');
  await offload('after');
  const shadow = await sides.arrived(shadowPods, 'after');
  expect(JSON.stringify(shadow.spec.pod)).not.toMatch(/-token"|KUBERNETES_SERVICE_HOST/);
  expect(await sides.there(secrets, 'after-token')).toBeUndefined();
  await set(null);
  await sides.arrived(secrets, 'before-token');
});
