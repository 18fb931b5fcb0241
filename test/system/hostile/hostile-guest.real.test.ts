/** A consumer whose pods and objects are hostile, each of a shape that the provider could mistake for ordinary work. */
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { lostKubeletMs } from '#agent/model/forced-end.ts';
import type { KubeApi } from '#kube/model/types.ts';
import {
  clusterRoles,
  ingresses,
  namespaces,
  nodes,
  pods,
  services,
  storageClasses,
} from '#shared/domain/core-kinds.ts';
import type { Node, Pod } from '#shared/domain/kube-object.ts';
import { isthmusAnnotation } from '#shared/domain/liqo-keys.ts';
import { remoteRoles } from '#shared/domain/remote-roles.ts';
import { messageOf } from '#shared/errors/message-of.ts';
import { peeringPolicies } from '#shared/schema/isthmus/peering-policy.ts';
import { namespaceMaps } from '#shared/schema/liqo/namespace-map.ts';
import { shadowPods } from '#shared/schema/liqo/shadow-pod.ts';
import { acceptGuests } from '#test/harness/guest-policy.ts';
import { startWebhookCluster, until, type WebhookCluster } from '#test/harness/webhook-cluster.ts';
import { container, guest, identity, shadow } from './hosted-consumers.ts';

const asKubelet = ['--as=slice-cons', '--as-group=cons', '--as-group=system:authenticated'];
const year = 31_536_000;
const inApps = (name: string) => ({ namespace: 'apps-cons', name });

let under: WebhookCluster;
let admin: KubeApi;
let kubelet: KubeApi;
const stop = new AbortController();

const refusal = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'nothing stopped it',
    (error: unknown) => messageOf(error),
  );
const podNamed = (name: string): Promise<Pod> =>
  until(async () => {
    const found = await admin.get(pods, inApps(name));
    expect(found).toBeDefined();
    return found as Pod;
  });

beforeAll(async () => {
  under = await startWebhookCluster();
  admin = under.cluster.api;
  for (const role of remoteRoles()) await admin.create(clusterRoles, role);
  const resources = { cpu: '2', memory: '2Gi', pods: '2' };
  await guest(under, { consumer: 'cons', slice: 'slice-cons', resources, limitsEnforcement: 'Soft' });
  kubelet = await identity(under, ['slice-cons', 'cons'], stop.signal);
  await until(() => kubelet.list(shadowPods, { namespace: 'apps-cons' }));
  await admin.create(nodes, { apiVersion: 'v1', kind: 'Node', metadata: { name: 'worker' } } as Node);
}, 900_000);
afterAll(async () => {
  stop.abort();
  await under?.stop();
});

test('a pod with a year to end gets ten minutes, and its share is free only when it is gone', async () => {
  const pod = { containers: [container], terminationGracePeriodSeconds: year };
  await until(() => kubelet.create(shadowPods, shadow('apps-cons', 'stays', pod)));
  expect((await podNamed('stays')).spec?.terminationGracePeriodSeconds).toBe(600);
  const target = { kind: 'Node', name: 'worker' };
  const binding = { apiVersion: 'v1', kind: 'Binding', metadata: inApps('stays'), target };
  await admin.post(pods, inApps('stays'), 'binding', binding);

  // The node has no kubelet, so the pod stays as one does that ignores SIGTERM.
  await kubelet.delete(shadowPods, inApps('stays'));
  await until(async () => {
    const { deletionGracePeriodSeconds } = (await podNamed('stays')).metadata;
    expect(deletionGracePeriodSeconds).toBe(600);
  });
  await until(() => kubelet.create(shadowPods, shadow('apps-cons', 'second')));
  expect(await refusal(kubelet.create(shadowPods, shadow('apps-cons', 'third')))).toMatch(
    /pods: requested 1, free 0 of 2 \(quota_exceeded\)/,
  );
  await admin.delete(pods, inApps('stays'), { gracePeriodSeconds: 0 });
  await kubelet.create(shadowPods, shadow('apps-cons', 'third'));
  for (const name of ['second', 'third']) {
    await kubelet.delete(shadowPods, inApps(name));
    await until(async () => expect(await admin.get(pods, inApps(name))).toBeUndefined());
  }
});

test.each([
  ['runs Isthmus gets requests', { [isthmusAnnotation.localPodUid]: 'u' }, { cpu: '25m', memory: '64Mi' }, 'Burstable'],
  ['may run Liqo stays BestEffort', {}, undefined, 'BestEffort'],
])('a pod of a consumer that %s, and counts by what it did not request', async (_, annotations, requests, qosClass) => {
  const silent = shadow('apps-cons', 'silent', { containers: [{ name: 'app', image: 'app:1' }] });
  await kubelet.create(shadowPods, { ...silent, metadata: { ...silent.metadata, annotations } });
  const { spec, status } = await podNamed('silent');
  expect(spec?.containers[0]?.resources?.requests).toEqual(requests);
  expect(status?.qosClass).toBe(qosClass);
  const rest = { containers: [{ ...container, resources: { requests: { cpu: '2', memory: '1Mi' } } }] };
  expect(await refusal(kubelet.create(shadowPods, shadow('apps-cons', 'rest', rest)))).toMatch(
    /cpu: requested 2, free 1975m of 2 \(quota_exceeded\)/,
  );
  await kubelet.delete(shadowPods, inApps('silent'));
  await until(async () => expect(await admin.get(pods, inApps('silent'))).toBeUndefined());
});

test.each([
  ['volumes[0].nfs', { volumes: [{ name: 'v', nfs: { server: '10.0.0.1', path: '/' } }] }],
  ['volumes[0].csi', { volumes: [{ name: 'v', csi: { driver: 'any' } }] }],
  ['volumes[0].flexVolume', { volumes: [{ name: 'v', flexVolume: { driver: 'any' } }] }],
  ['nodeSelector', { nodeSelector: { 'node-role.kubernetes.io/control-plane': '' } }],
  ['schedulerName', { schedulerName: 'mine' }],
  ['runtimeClassName', { runtimeClassName: 'mine' }],
])('a pod with %s is refused by field, value and what is accepted', async (field, more) => {
  const said = await refusal(
    kubelet.create(shadowPods, shadow('apps-cons', 'hostile', { containers: [container], ...more })),
  );
  expect(said).toContain(`spec.pod.${field}: `);
  expect(said).toMatch(/accepted.* \(sandbox_refused\)/);
});

const service = (name: string, more: object) => ({
  ...{ apiVersion: 'v1', kind: 'Service', metadata: inApps(name), spec: { ports: [{ port: 80 }] } },
  ...more,
});
const ingress = (name: string, host: string, annotations: Record<string, string> = {}) => ({
  apiVersion: 'networking.k8s.io/v1',
  kind: 'Ingress',
  metadata: { ...inApps(name), annotations },
  spec: {
    rules: [
      {
        host,
        http: { paths: [{ path: '/', pathType: 'Prefix', backend: { service: { name: 's', port: { number: 80 } } } }] },
      },
    ],
  },
});

test('Services and Ingresses give no orders to the controllers of the provider, and ordinary Services pass', async () => {
  const dns = { 'external-dns.alpha.kubernetes.io/hostname': 'bank.example.com' };
  const hostile = service('dns', { metadata: { ...inApps('dns'), annotations: dns } });
  // The API server learns of a new webhook configuration a moment after it is stored.
  await until(async () =>
    expect(await under.create(hostile, '--dry-run=server', ...asKubelet)).toMatch(
      /annotations\[external-dns.*accepted are .* \(sandbox_refused\)/,
    ),
  );
  const address = { spec: { type: 'LoadBalancer', loadBalancerIP: '192.0.2.7', ports: [{ port: 80 }] } };
  expect(await refusal(kubelet.create(services, service('ip', address) as never))).toMatch(
    /loadBalancerIP is 192.0.2.7/,
  );
  await kubelet.create(services, service('ordinary', {}) as never);

  expect(await refusal(kubelet.create(ingresses, ingress('bank', 'bank.example.com') as never))).toMatch(
    /spec has host bank.example.com: .*accepted hosts are none/,
  );
  await acceptGuests(admin, { ingressHosts: ['*.guests.example.com'] });
  await until(() => kubelet.create(ingresses, ingress('own', 'shop.guests.example.com') as never));
  const snippet = { 'nginx.ingress.kubernetes.io/configuration-snippet': 'return 200;' };
  expect(
    await refusal(kubelet.create(ingresses, ingress('snippet', 'a.guests.example.com', snippet) as never)),
  ).toMatch(/configuration-snippet\] is "return 200;"/);
});

test('no object of a guest keeps its namespace by a finalizer', async () => {
  const metadata = { ...inApps('stays'), finalizers: ['example.com/stay'] };
  const config = { apiVersion: 'v1', kind: 'ConfigMap', metadata };
  expect(await under.create(config, ...asKubelet)).toMatch(/finalizers has example.com\/stay.*\(sandbox_refused\)/);
  const staying = shadow('apps-cons', 'stays');
  expect(
    await refusal(kubelet.create(shadowPods, { ...staying, metadata: { ...staying.metadata, ...metadata } })),
  ).toMatch(/finalizers has example.com\/stay/);
});

test('a namespace of a consumer is closed to other guests and to metadata services, and its storage is bounded', async () => {
  const policy = await until(async () => {
    const found = await under.kubectl(['-n', 'apps-cons', 'get', 'networkpolicy', 'isthmus-default', '-o', 'json']);
    return JSON.parse(found) as { spec: { policyTypes: string[]; egress: { to?: object[] }[] } };
  });
  expect(policy.spec.policyTypes).toEqual(['Ingress', 'Egress']);
  expect(JSON.stringify(policy.spec.egress)).toMatch(/"except":\[[^\]]*"169\.254\.0\.0\/16"/);
  const removal = ['-n', 'apps-cons', 'delete', 'networkpolicy', 'isthmus-default', ...asKubelet];
  expect(await under.kubectl(removal)).toMatch(/forbidden/);
  const claim = {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: inApps('huge'),
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Ti' } } },
  };
  expect(await under.create(claim, '--dry-run=server', ...asKubelet)).toMatch(/storage_class_not_offered/);
  await admin.create(storageClasses, {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name: 'fast' },
    provisioner: 'disks.example.com',
  });
  await admin.mergePatch(peeringPolicies, { name: 'guests' }, { spec: { asProvider: { storageClasses: ['fast'] } } });
  const offered = { ...claim, spec: { ...claim.spec, storageClassName: 'fast' } };
  await until(async () =>
    expect(await under.create(offered, '--dry-run=server', ...asKubelet)).toMatch(/exceeded quota: isthmus-default/),
  );
});

test('a pod that tolerates every taint and names networks of nodes gets none that the provider did not offer', async () => {
  const pod = { containers: [container], tolerations: [{ operator: 'Exists' }] };
  const object = shadow('apps-cons', 'tolerant', pod);
  const annotations = { 'k8s.v1.cni.cncf.io/networks': 'kube-system/lan', note: 'kept' };
  await kubelet.create(shadowPods, { ...object, metadata: { ...object.metadata, annotations } });
  const keys = (await podNamed('tolerant')).spec?.tolerations?.map(({ key }) => key);
  expect(keys).toEqual(expect.arrayContaining(['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable']));
  expect(keys).not.toContain(undefined);
  const noted = Object.keys((await podNamed('tolerant')).metadata.annotations ?? {});
  expect(noted).toContain('note');
  expect(noted).not.toContain('k8s.v1.cni.cncf.io/networks');
});

test('the end of the mapping does not wait for a pod that nothing ends', async () => {
  await admin.mergePatch(
    peeringPolicies,
    { name: 'guests' },
    { spec: { asProvider: { guests: { maxGracePeriodSeconds: 1 } } } },
  );
  const target = { kind: 'Node', name: 'worker' };
  await admin.post(pods, inApps('tolerant'), 'binding', {
    apiVersion: 'v1',
    kind: 'Binding',
    metadata: inApps('tolerant'),
    target,
  });
  const startedAt = Date.now();
  await admin.delete(namespaceMaps, { namespace: 'liqo-tenant-cons', name: 'here' });
  await vi.waitFor(async () => expect(await admin.get(namespaces, { name: 'apps-cons' })).toBeUndefined(), {
    timeout: 120_000,
    interval: 250,
  });
  // The kubelet had its time to answer.
  expect(Date.now() - startedAt).toBeGreaterThan(lostKubeletMs);
}, 180_000);
