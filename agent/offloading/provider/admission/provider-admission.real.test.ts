/** Admission at the provider: what a consumer may create there, as the API server asks and kubectl shows. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Cluster } from '#kube/model/types.ts';
import { clusterRoles, nodes, pods, roleBindings, serviceAccounts } from '#shared/domain/core-kinds.ts';
import { isthmusAnnotation } from '#shared/domain/liqo-keys.ts';
import { peeringPolicies } from '#shared/schema/isthmus/peering-policy.ts';
import { namespaceMaps } from '#shared/schema/liqo/namespace-map.ts';
import { quotas } from '#shared/schema/liqo/quota.ts';
import { shadowPods } from '#shared/schema/liqo/shadow-pod.ts';
import { acceptGuests } from '#test/harness/guest-policy.ts';
import { inOrder } from '#test/harness/in-order.ts';
import { offloadingApi, startWebhookCluster, until, type WebhookCluster } from '#test/harness/webhook-cluster.ts';

const slice = ['--as=slice-1', '--as-group=cons', '--as-group=system:authenticated'];
const controlPlane = ['--as=cons', '--as-group=liqo.io', '--as-group=system:authenticated'];

let under: WebhookCluster;
let cluster: Cluster;
let { kubectl, create }: Pick<WebhookCluster, 'kubectl' | 'create'> = {} as WebhookCluster;
// In this order: each test finds what the ones before it left.
inOrder('file');
beforeAll(async () => {
  under = await startWebhookCluster();
  ({ cluster, kubectl, create } = under);
}, 900_000);
afterAll(async () => await under?.stop());

describe('ShadowPods', () => {
  const origin = { 'offloading.liqo.io/origin': 'cons' };
  const container = (cpu: string, memory = '64Mi') => ({
    name: 'app',
    image: 'app:1',
    resources: { requests: { cpu, memory } },
  });
  const shadow = (
    name: string,
    pod: object = { containers: [container('500m')] },
    labels: Record<string, string> = origin,
  ) => ({
    apiVersion: offloadingApi,
    kind: 'ShadowPod',
    metadata: { namespace: 'apps-cons', name, labels },
    spec: { pod },
  });
  /** Of a consumer that runs Isthmus, whose pods keep their own QoS class. */
  const byIsthmus = (one: ReturnType<typeof shadow>) => ({
    ...one,
    metadata: { ...one.metadata, annotations: { [isthmusAnnotation.localPodUid]: 'of-a-pod-at-home' } },
  });
  const patch = (name: string, body: object, as = slice) =>
    kubectl(['-n', 'apps-cons', 'patch', 'shadowpod', name, '--type=merge', '-p', JSON.stringify(body), ...as]);
  const remove = (name: string) => cluster.api.delete(shadowPods, { namespace: 'apps-cons', name });
  const quota = (resources: Record<string, string>, more: object = {}) => ({
    apiVersion: offloadingApi,
    kind: 'Quota',
    metadata: { namespace: 'liqo-tenant-cons', name: 'slice-1' },
    spec: { user: 'slice-1', limitsEnforcement: 'None' as const, resources, ...more },
  });
  const setQuota = (body: object) =>
    cluster.api.mergePatch(quotas, { namespace: 'liqo-tenant-cons', name: 'slice-1' }, { spec: body });

  beforeAll(async () => {
    const group = 'rbac.authorization.k8s.io';
    await cluster.api.create(clusterRoles, {
      apiVersion: `${group}/v1`,
      kind: 'ClusterRole',
      metadata: { name: 'liqo-virtual-kubelet-remote' },
      rules: [{ apiGroups: ['offloading.liqo.io'], resources: ['shadowpods'], verbs: ['*'] }],
    });
    const labels = { 'liqo.io/replicated': 'true', 'liqo.io/originID': 'cons', 'liqo.io/remote-cluster-id': 'cons' };
    await cluster.api.create(namespaceMaps, {
      apiVersion: offloadingApi,
      kind: 'NamespaceMap',
      metadata: { namespace: 'liqo-tenant-cons', name: 'here', labels },
      spec: { desiredMapping: { apps: 'apps-cons' } },
    });
    await until(async () =>
      expect(await cluster.api.get(serviceAccounts, { namespace: 'apps-cons', name: 'default' })).toBeDefined(),
    );
    await until(async () =>
      expect(await kubectl(['-n', 'apps-cons', 'auth', 'can-i', 'create', 'shadowpods', ...slice])).toBe('yes'),
    );
  });

  test('B065 need a quota of their user', async () => {
    expect(await create(shadow('web'), ...slice)).toMatch(/no Quota for user slice-1.*\(quota_missing\)/);
    await cluster.api.create(quotas, quota({ cpu: '2', memory: '1Gi', pods: '10' }));
    expect(await create(shadow('web'), ...slice)).toMatch(/created/);
    expect((await cluster.api.get(shadowPods, { namespace: 'apps-cons', name: 'web' }))?.metadata.labels).toMatchObject(
      { 'liqo.io/creator-user': 'slice-1' },
    );
  });

  test('B061 carry the creator that we saw, not the one they claim', async () => {
    await create(shadow('liar', undefined, { ...origin, 'liqo.io/creator-user': 'mallory' }), ...slice);
    const read = async () =>
      (await cluster.api.get(shadowPods, { namespace: 'apps-cons', name: 'liar' }))?.metadata.labels?.[
        'liqo.io/creator-user'
      ];
    expect(await read()).toBe('slice-1');
    await patch('liar', { metadata: { labels: { 'liqo.io/creator-user': 'mallory' } } });
    expect(await read()).toBe('slice-1');
    await remove('liar');
  });

  test('a consumer that notes itself as the creator saves one question, and the next one is still asked', async () => {
    const asked = async (webhook: string): Promise<number> => {
      const line = new RegExp(`^apiserver_admission_webhook_request_total\\{.*name="${webhook}".*\\} (\\d+)$`, 'gm');
      const metrics = await cluster.api.getPath('/metrics');
      return [...metrics.matchAll(line)].reduce((sum, [, count]) => sum + Number(count), 0);
    };
    const counts = async () => [await asked('shadowpod.mutate.liqo.io'), await asked('shadowpod.validate.liqo.io')];
    const [mutated = 0, validated = 0] = await counts();
    await create(shadow('stranger'), ...slice);
    expect(await counts()).toEqual([mutated + 1, validated + 1]);
    expect(
      await create(shadow('regular', undefined, { ...origin, 'liqo.io/creator-user': 'slice-1' }), ...slice),
    ).toContain('created');
    expect(await counts()).toEqual([mutated + 1, validated + 2]);
    await Promise.all([remove('stranger'), remove('regular')]);
  });

  test('B059 B060 must be of the consumer whose namespace it is', async () => {
    expect(await create(shadow('x', undefined, {}), ...slice)).toMatch(/offloading.liqo.io\/origin\] is missing/);
    expect(await create(shadow('x', undefined, { 'offloading.liqo.io/origin': 'other' }), ...slice)).toMatch(
      /is other, but namespace apps-cons is that of cons.*\(forbidden\)/,
    );
    expect(await create({ ...shadow('x'), metadata: { namespace: 'plain', name: 'x', labels: origin } })).toMatch(
      /namespace plain belongs to no consumer/,
    );
  });

  test('B063 B066 fit into the quota, and the refusal says what is asked and what is free', async () => {
    const big = { containers: [container('1750m')] };
    expect(await create(shadow('big', big), ...slice)).toMatch(
      /quota of slice-1 exceeded: cpu: requested 1750m, free 1500m of 2 \(quota_exceeded\)/,
    );
    const gpu = { containers: [{ name: 'a', resources: { limits: { 'example.dev/gpu': '1' } } }] };
    expect(await create(shadow('gpu', gpu), ...slice)).toMatch(/example.dev\/gpu: limit not found/);
    const debt = { containers: [container('-5')] };
    expect(await create(shadow('debt', debt), ...slice)).toMatch(
      /requests.cpu is "-5": accepted is a quantity of at least 0/,
    );
  });

  test('B070 B072 created at once never exceed it, and one that is gone or finished gives its share back at once', async () => {
    const answers = await Promise.all(Array.from({ length: 6 }, (_, i) => create(shadow(`burst-${i}`), ...slice)));
    expect(answers.filter((answer) => /created/.test(answer))).toHaveLength(3);
    expect(answers.filter((answer) => /free 0 of 2/.test(answer))).toHaveLength(3);
    const admitted = answers.flatMap((answer, i) => (/created/.test(answer) ? [`burst-${i}`] : []));
    await remove(admitted[0] ?? '');
    await until(async () => expect(await create(shadow('next'), ...slice)).toMatch(/created/));
    const next = { namespace: 'apps-cons', name: 'next' };
    await until(() =>
      cluster.api.mergePatch(pods, next, { status: { phase: 'Succeeded' } }, { subresource: 'status' }),
    );
    await until(async () => expect((await cluster.api.get(shadowPods, next))?.status?.phase).toBe('Succeeded'));
    expect(await create(shadow('after'), ...slice)).toMatch(/created/);
    for (const name of [...admitted, 'next', 'after']) await remove(name);
  });

  test('B071 count as one of pods each', async () => {
    await setQuota({ resources: { cpu: '9', memory: '9Gi', pods: '1' } });
    await until(async () => expect(await create(shadow('second'), ...slice)).toMatch(/pods: requested 1, free 0 of 1/));
    await setQuota({ resources: { cpu: '9', memory: '9Gi', pods: '10' } });
  });

  test('B064 B067 B068 under Soft enforcement request something, under Hard what they limit, and none are taken when the quota is cordoned', async () => {
    const forgetful = { containers: [{ name: 'app', image: 'app:1', resources: { requests: { cpu: '1m' } } }] };
    await acceptGuests(cluster.api, { defaultRequests: {} }, 'strict');
    await setQuota({ limitsEnforcement: 'Soft' });
    await until(async () =>
      expect(await create(shadow('forgetful', forgetful), ...slice)).toMatch(
        /container app has no request for memory, which limitsEnforcement Soft asks for/,
      ),
    );
    await setQuota({ limitsEnforcement: 'Hard' });
    await until(async () =>
      expect(await create(shadow('loose'), ...slice)).toMatch(
        /container app has a limit other than its request for cpu/,
      ),
    );
    await cluster.api.delete(peeringPolicies, { name: 'strict' });
    const whole = {
      containers: [{ name: 'app', image: 'app:1' }],
      initContainers: [{ name: 'first', image: 'app:1' }],
      resources: { requests: { cpu: '10m', memory: '10Mi' } },
    };
    await until(async () => expect(await create(byIsthmus(shadow('whole', whole)), ...slice)).toMatch(/created/));
    const even = { requests: { cpu: '10m', memory: '10Mi' }, limits: { cpu: '10m', memory: '10Mi' } };
    await until(async () =>
      expect((await cluster.api.get(pods, { namespace: 'apps-cons', name: 'whole' }))?.spec).toMatchObject({
        ...{ containers: [{ resources: even }], initContainers: [{ resources: even }], resources: even },
      }),
    );
    const uneven = byIsthmus(shadow('uneven', { ...whole, resources: { ...even, limits: { cpu: '9' } } }));
    expect(await create(uneven, ...slice)).toMatch(/pod as a whole has a limit other than its request for cpu/);
    expect(await create(shadow('of-liqo', whole), ...slice)).toMatch(/QoS class .* Guaranteed instead of Burstable/);
    await remove('whole');
    await setQuota({ limitsEnforcement: 'None', cordoned: true });
    await until(async () => expect(await create(shadow('late'), ...slice)).toMatch(/cordoned.*\(quota_cordoned\)/));
    await setQuota({ cordoned: null });
    await until(async () => expect(await create(shadow('late'), ...slice)).toMatch(/created/));
    expect(await create(shadow('forgetful', forgetful), ...slice)).toMatch(/created/);
    await remove('forgetful');
  });

  test.each([
    [{ hostNetwork: true }, 'spec.pod.hostNetwork'],
    [{ hostPID: true }, 'spec.pod.hostPID'],
    [{ hostIPC: true }, 'spec.pod.hostIPC'],
    [{ volumes: [{ name: 'root', hostPath: { path: '/' } }] }, 'spec.pod.volumes\\[0\\].hostPath'],
    [{ nodeName: 'control-plane' }, 'spec.pod.nodeName'],
    [{ priorityClassName: 'system-node-critical' }, 'spec.pod.priorityClassName'],
    [
      { initContainers: [{ name: 'i', securityContext: { privileged: true } }] },
      'initContainers\\[0\\].securityContext.privileged',
    ],
    [{ initContainers: [{ name: 'i', securityContext: { capabilities: { add: ['SYS_ADMIN'] } } }] }, 'SYS_ADMIN'],
    [{ initContainers: [{ name: 'i', ports: [{ containerPort: 80, hostPort: 80 }] }] }, 'hostPort'],
    [{ initContainers: 'surprise' }, 'spec.pod.initContainers: .*array'],
  ])('B128 with %j do not get past the sandbox', async (hostile, message) => {
    const answer = await create(shadow('hostile', { containers: [container('1m')], ...hostile }), ...slice);
    expect(answer).toMatch(new RegExp(`denied the request: .*${message}`));
  });

  test('B062 B069 change in images, sizes, deadline, tolerations and ephemeral containers only, and only by their own user', async () => {
    expect(await patch('late', { spec: { pod: { containers: [{ ...container('500m'), image: 'app:2' }] } } })).toMatch(
      /patched/,
    );
    const renamed = { ...container('500m'), name: 'other' };
    expect(await patch('late', { spec: { pod: { containers: [renamed] } } })).toMatch(
      /spec.pod.containers cannot change: accepted are/,
    );
    expect(await patch('late', { spec: { pod: { containers: [container('1')] } } })).toMatch(/patched/);
    expect(await patch('late', { spec: { pod: { containers: [container('64')] } } })).toMatch(
      /quota of slice-1 exceeded: cpu: requested 64/,
    );
    const debug = { name: 'debug', image: 'busybox' };
    expect(await patch('late', { spec: { pod: { ephemeralContainers: [debug] } } })).toMatch(/patched/);
    const strong = { ...debug, name: 'strong', securityContext: { privileged: true } };
    expect(await patch('late', { spec: { pod: { ephemeralContainers: [debug, strong] } } })).toMatch(
      /ephemeralContainers\[1\].securityContext.privileged/,
    );
    expect(await patch('late', { spec: { pod: { ephemeralContainers: [strong] } } })).toMatch(
      /spec.pod.ephemeralContainers cannot change/,
    );
    expect(await patch('late', { spec: { pod: { hostname: 'x' } } })).toMatch(/spec.pod.hostname cannot change/);
    expect(await patch('late', { metadata: { labels: { 'offloading.liqo.io/origin': 'x' } } })).toMatch(
      /origin\] is immutable/,
    );
    const other = ['--as=slice-2', '--as-group=cons'];
    expect(await patch('late', { metadata: { labels: { a: 'b' } } }, other)).toMatch(
      /user slice-2 may not change this ShadowPod: it is that of slice-1/,
    );
    expect(await kubectl(['-n', 'apps-cons', 'delete', 'shadowpod', 'late', ...other])).toMatch(/deleted/);
  });
});

describe('the control plane kinds', () => {
  const auth = 'authentication.liqo.io/v1beta1';
  const copied = {
    'liqo.io/replicated': 'true',
    'liqo.io/replication': 'false',
    'liqo.io/originID': 'cons',
    'liqo.io/remote-cluster-id': 'cons',
  };
  const resourceSlice = (name: string, namespace: string, labels: Record<string, string> = {}) => ({
    apiVersion: auth,
    kind: 'ResourceSlice',
    metadata: { name, namespace, labels },
    spec: {},
  });

  beforeAll(async () => {
    const group = 'rbac.authorization.k8s.io';
    const roleRef = { apiGroup: group, kind: 'ClusterRole', name: 'liqo-remote-controlplane' };
    const rules = [
      { apiGroups: ['authentication.liqo.io'], resources: ['resourceslices', 'renews'], verbs: ['*'] },
      { apiGroups: ['offloading.liqo.io'], resources: ['namespacemaps'], verbs: ['*'] },
    ];
    await cluster.api.create(clusterRoles, {
      apiVersion: `${group}/v1`,
      kind: 'ClusterRole',
      metadata: { name: roleRef.name },
      rules,
    });
    await cluster.api.create(roleBindings, {
      apiVersion: `${group}/v1`,
      kind: 'RoleBinding',
      metadata: { namespace: 'liqo-tenant-cons', name: 'control-plane' },
      roleRef,
      subjects: [{ apiGroup: group, kind: 'User', name: 'cons' }],
    });
  });

  test('a consumer copies its objects under its own name and never marks one as ours', async () => {
    const at = 'liqo-tenant-cons';
    await until(async () => expect(await create(resourceSlice('s1', at, copied), ...controlPlane)).toMatch(/created/));
    expect(await create(resourceSlice('s2', at, { ...copied, 'liqo.io/originID': 'victim' }), ...controlPlane)).toMatch(
      /originID\] is victim: from consumer cons accepted is cons/,
    );
    const active = { 'liqo.io/replication': 'true', 'liqo.io/remoteID': 'victim' };
    const map = {
      apiVersion: offloadingApi,
      kind: 'NamespaceMap',
      metadata: { namespace: at, name: 'x', labels: active },
      spec: {},
    };
    expect(await create(map, ...controlPlane)).toMatch(/denied the request: metadata.labels\[liqo.io\/replic/);
  });

  test('a consumer does not touch the marks by which the provider cordons', async () => {
    const annotate = (mark: string, ...as: string[]) =>
      kubectl([
        '-n',
        'liqo-tenant-cons',
        'annotate',
        '--overwrite',
        'resourceslices.authentication.liqo.io',
        's1',
        mark,
        ...as,
      ]);
    for (const mark of ['liqo.io/cordon', 'liqo.io/cordon-tenant']) {
      expect(await annotate(`${mark}=true`)).toMatch(/annotated/);
      expect(await annotate(`${mark}-`, ...controlPlane)).toMatch(
        /is the provider's: a consumer may not change it from true to absent/,
      );
      expect(await annotate(`${mark}=false`, ...controlPlane)).toMatch(/may not change it from true to false/);
    }
    expect(await annotate('note=mine', ...controlPlane)).toMatch(/annotated/);
  });

  test('names of local slices are unique in the cluster', async () => {
    expect(await create(resourceSlice('milan', 'plain'))).toMatch(/created/);
    expect(await create(resourceSlice('milan', 'default'))).toMatch(
      /that of a ResourceSlice in namespace plain.*\(already_exists\)/,
    );
  });

  test('Tenants agree with their namespace, one in each', async () => {
    const tenant = (namespace: string, clusterID: string, name = clusterID) => ({
      apiVersion: auth,
      kind: 'Tenant',
      metadata: { namespace, name },
      spec: { clusterID },
    });
    expect(await create(tenant('plain', 'cons'))).toMatch(/namespace plain is no tenant namespace/);
    expect(await create(tenant('liqo-tenant-cons', 'other'))).toMatch(
      /spec.clusterID is other, but namespace liqo-tenant-cons is that of cons/,
    );
    expect(await create(tenant('liqo-tenant-cons', 'cons'))).toMatch(/created/);
    expect(
      await kubectl(['-n', 'liqo-tenant-cons', 'get', 'tenant', 'cons', '-o', 'jsonpath={.metadata.labels}']),
    ).toBe('{"liqo.io/remote-cluster-id":"cons"}');
    expect(await create(tenant('liqo-tenant-cons', 'cons', 'again'))).toMatch(
      /Tenant cons exists in namespace liqo-tenant-cons/,
    );
    expect(await kubectl(['-n', 'liqo-tenant-cons', 'delete', 'tenant', 'cons'])).toMatch(/deleted/);
  });

  test('B056 B057 B058 ForeignClusters get their label; VirtualNodes get defaults, keep their template, and never have the name of a Node', async () => {
    const fc = {
      apiVersion: 'core.liqo.io/v1beta1',
      kind: 'ForeignCluster',
      metadata: { name: 'cons' },
      spec: { clusterID: 'cons' },
    };
    expect(await create(fc)).toMatch(/created/);
    expect(await kubectl(['get', 'foreigncluster', 'cons', '-o', 'jsonpath={.metadata.labels}'])).toMatch(
      /"liqo.io\/remote-cluster-id":"cons"/,
    );
    await cluster.api.create(nodes, { apiVersion: 'v1', kind: 'Node', metadata: { name: 'worker' } });
    const node = (name: string) => ({
      apiVersion: offloadingApi,
      kind: 'VirtualNode',
      metadata: { namespace: 'liqo-tenant-cons', name },
      spec: { clusterID: 'cons' },
    });
    expect(await create(node('worker'))).toMatch(/worker is that of an existing Node/);
    expect(await create(node('vn1'))).toMatch(/created/);
    expect(await kubectl(['-n', 'liqo-tenant-cons', 'get', 'virtualnode', 'vn1', '-o', 'jsonpath={.spec}'])).toMatch(
      /"createNode":true.*"disableNetworkCheck":false/,
    );
    const image = { template: { spec: { template: { spec: { containers: [{ name: 'vk', image: 'mine:1' }] } } } } };
    const own = { ...node('vn2'), spec: { clusterID: 'cons', template: { spec: image } } };
    expect(await create(own)).toMatch(/created/);
    expect(await kubectl(['-n', 'liqo-tenant-cons', 'get', 'virtualnode', 'vn2', '-o', 'jsonpath={.spec}'])).toMatch(
      /"image":"mine:1"/,
    );
  });

  test('B057 a VkOptionsTemplate gives VirtualNodes their defaults; what means nothing here is refused', async () => {
    const required = { createNode: false, disableNetworkCheck: true, containerImage: 'vk', metricsEnabled: false };
    const template = (name: string, more: object = {}) => ({
      apiVersion: offloadingApi,
      kind: 'VkOptionsTemplate',
      metadata: { namespace: 'liqo-tenant-cons', name },
      spec: { ...required, ...more },
    });
    expect(await create(template('odd', { extraArgs: ['--home-kubeconfig=/x'] }))).toMatch(
      /extraArgs contains "--home-kubeconfig=\/x", which means nothing here.*\(invalid_input\)/,
    );
    const spec = { clusterID: 'cons', vkOptionsTemplateRef: { name: 'mine' } };
    const metadata = { namespace: 'liqo-tenant-cons', name: 'templated' };
    const node = { apiVersion: offloadingApi, kind: 'VirtualNode', metadata, spec };
    expect(await create(node)).toMatch(/VkOptionsTemplate mine, which does not exist.*\(not_found\)/);
    expect(await create(template('mine', { replicas: 2 }))).toMatch(
      /Warning: spec.replicas has no effect[\s\S]*created|created[\s\S]*Warning: spec.replicas has no effect/,
    );
    expect(await create(node)).toMatch(/created/);
    expect(
      await kubectl(['-n', 'liqo-tenant-cons', 'get', 'virtualnode', 'templated', '-o', 'jsonpath={.spec}']),
    ).toMatch(/"createNode":false.*"disableNetworkCheck":true/);
  });
});
