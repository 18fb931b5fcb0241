/** Admission as a real API server asks for it: what kubectl gets to see, as an administrator and as a consumer. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { createOffloadingControllers } from '#agent/controllers/offloading-controllers.ts';
import { openCluster } from '#agent/kube/cluster.ts';
import { connectKubeconfig } from '#agent/kube/kubeconfig.ts';
import type { Cluster } from '#agent/kube/types.ts';
import { systemClock } from '#agent/runtime/clock.ts';
import {
  clusterRoles,
  customResourceDefinitions as crds,
  mutatingWebhookConfigurations,
  namespaces,
  nodes,
  pods,
  roleBindings,
  secrets,
  serviceAccounts,
  validatingWebhookConfigurations,
} from '#shared/domain/core-kinds.ts';
import type { Pod, PodSpec } from '#shared/domain/kube-object.ts';
import { silentLog } from '#shared/ports/log.ts';
import { allKinds } from '#shared/schema/all-kinds.ts';
import { customResourceDefinitions } from '#shared/schema/crd.ts';
import { namespaceMaps } from '#shared/schema/liqo/namespace-map.ts';
import { type NamespaceOffloadingSpec, namespaceOffloadings } from '#shared/schema/liqo/namespace-offloading.ts';
import { quotas } from '#shared/schema/liqo/quota.ts';
import { shadowPods } from '#shared/schema/liqo/shadow-pod.ts';
import { startApiServer, type TestApiServer } from '#test/harness/kube-apiserver.ts';
import { run } from '#test/harness/program.ts';
import { type Admission, removeAdmission, startAdmission } from './admission.ts';

const deps = { clock: systemClock, log: silentLog };
const patience = { timeout: 30_000, interval: 25 };
const offloadingApi = 'offloading.liqo.io/v1beta1';
const slice = ['--as=slice-1', '--as-group=cons', '--as-group=system:authenticated'];
const controlPlane = ['--as=cons', '--as-group=liqo.io', '--as-group=system:authenticated'];

let server: TestApiServer;
let cluster: Cluster;
let admission: Admission;
const end = new AbortController();
const running: Promise<void>[] = [];

const until = <T>(check: () => Promise<T>): Promise<T> => vi.waitFor(check, patience);

/** Output of kubectl, errors included: what a user reads. */
async function kubectl(args: readonly string[], input?: object): Promise<string> {
  const options = input === undefined ? {} : { input: JSON.stringify(input) };
  const ended = await run(server.kubebox, ['kubectl', '--kubeconfig', server.kubeconfigPath, ...args], options);
  return `${ended.stdout}${ended.stderr}`.trim();
}
const create = (object: object, ...as: readonly string[]) => kubectl(['create', '-f', '-', ...as], object);
async function createPod(namespace: string, name: string, spec: Partial<PodSpec> = {}): Promise<Pod> {
  const pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { namespace, name },
    spec: { containers: [{ name: 'app', image: 'app' }], ...spec },
  };
  const output = await kubectl(['create', '-o', 'json', '-f', '-'], pod);
  expect(output).toMatch(/^\{/);
  return JSON.parse(output) as Pod;
}

async function makeNamespace(name: string, labels: Record<string, string> = {}): Promise<void> {
  await cluster.api.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } });
  await until(async () =>
    expect(await cluster.api.get(serviceAccounts, { namespace: name, name: 'default' })).toBeDefined(),
  );
}
const offloading = (namespace: string, spec: Partial<NamespaceOffloadingSpec> = {}, name = 'offloading') => ({
  apiVersion: offloadingApi,
  kind: 'NamespaceOffloading',
  metadata: { namespace, name },
  spec,
});
/** A namespace that is offloaded already, as the pod webhook finds it. */
async function offloaded(name: string, spec: Partial<NamespaceOffloadingSpec>): Promise<void> {
  await makeNamespace(name, { 'liqo.io/scheduling-enabled': 'true' });
  expect(await create(offloading(name, spec))).toMatch(/created/);
}

beforeAll(async () => {
  server = await startApiServer({ controllerManager: true });
  cluster = openCluster(await connectKubeconfig(server.kubeconfig), deps, end.signal);
  for (const definition of customResourceDefinitions()) await cluster.api.create(crds, definition as never);
  for (const kind of allKinds) await until(() => cluster.api.list(kind));
  for (const name of ['liqo', 'plain']) await makeNamespace(name);
  const tenant = (id: string) => ({ 'liqo.io/tenant-namespace': 'true', 'liqo.io/remote-cluster-id': id });
  await makeNamespace('liqo-tenant-cons', tenant('cons'));
  const common = { ...deps, cluster, clusterId: 'here' };
  admission = await startAdmission({ ...common, host: '127.0.0.1', port: 0, callHost: '127.0.0.1' });
  running.push(admission.run(end.signal), ...createOffloadingControllers(common).map((c) => c.run(end.signal)));
  await until(async () => {
    const found = await cluster.api.get(validatingWebhookConfigurations, { name: 'isthmus-webhook' });
    expect(found?.webhooks?.length).toBeGreaterThan(5);
  });
  // The API server learns of a new configuration a moment after it is stored.
  await until(async () =>
    expect(await create(offloading('plain', {}, 'wrong'), '--dry-run=server')).toMatch(/isthmus|metadata.name/),
  );
}, 900_000);
afterAll(async () => {
  end.abort();
  await Promise.all(running);
  await server?.stop();
});

describe('registration', () => {
  test('is put back when somebody changes it', async () => {
    const ref = { name: 'isthmus-webhook' };
    const before = await cluster.api.get(mutatingWebhookConfigurations, ref);
    expect(before?.metadata.labels).toMatchObject({ 'liqo.io/webhook': 'true' });
    await cluster.api.mergePatch(mutatingWebhookConfigurations, ref, { webhooks: [] });
    await until(async () =>
      expect((await cluster.api.get(mutatingWebhookConfigurations, ref))?.webhooks).toEqual(before?.webhooks),
    );
    await cluster.api.delete(mutatingWebhookConfigurations, ref);
    await until(async () => expect(await cluster.api.get(mutatingWebhookConfigurations, ref)).toBeDefined());
  });

  test('of two replicas that start at once is one, with one certificate', async () => {
    const stop = new AbortController();
    await cluster.api.delete(secrets, { namespace: 'liqo', name: 'isthmus-webhook-certs' });
    const common = { ...deps, cluster, clusterId: 'here', host: '127.0.0.1', port: 0, callHost: '127.0.0.1' };
    const [a, b] = await Promise.all([startAdmission(common), startAdmission(common)]);
    const stored = await cluster.api.get(secrets, { namespace: 'liqo', name: 'isthmus-webhook-certs' });
    const ca = Buffer.from(stored?.data?.['ca.crt'] ?? '', 'base64').toString();
    for (const { port } of [a, b]) {
      const answer = await fetchStatus(port, ca, '/mutate/pod');
      expect(answer).toBe(405);
    }
    stop.abort();
    await Promise.all([a.run(stop.signal), b.run(stop.signal)]);
    // The one that keeps running takes the new certificate over, and the API server goes on calling it throughout.
    await until(async () => expect(await fetchStatus(admission.port, ca, '/mutate/pod')).toBe(405));
    expect(await create(offloading('plain', {}, 'wrong'))).toMatch(/accepted is "offloading"|must be 'offloading'/);
  });
});

/** GET with verification against `ca`; undefined when the certificate is not trusted. */
async function fetchStatus(port: number, ca: string, path: string): Promise<number | undefined> {
  const { get } = await import('node:https');
  return new Promise((resolve) => {
    get({ host: '127.0.0.1', port, path, ca, agent: false }, (response) => {
      response.resume();
      resolve(response.statusCode);
    }).on('error', () => resolve(undefined));
  });
}

describe('pods', () => {
  const toleration = { key: 'virtual-node.liqo.io/not-allowed', operator: 'Exists', effect: 'NoExecute' };
  const required = (pod: Pod) =>
    pod.spec?.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms;
  const type = (operator: string) => ({ key: 'liqo.io/type', operator, values: ['virtual-node'] });
  const zone = (value: string) => ({ key: 'zone', operator: 'In', values: [value] });
  const selector = { nodeSelectorTerms: [{ matchExpressions: [zone('a')] }, { matchExpressions: [zone('b')] }] };

  test('of other namespaces are left alone', async () => {
    const pod = await createPod('plain', 'web');
    expect(pod.spec?.tolerations).not.toContainEqual(toleration);
    expect(pod.spec?.affinity).toBeUndefined();
  });

  test('of a LocalAndRemote namespace tolerate virtual nodes and keep their affinity', async () => {
    await offloaded('both', {});
    const pod = await createPod('both', 'web');
    expect(pod.spec?.tolerations).toContainEqual(toleration);
    expect(pod.spec?.affinity).toBeUndefined();
    const own = await createPod('both', 'own', { tolerations: [{ operator: 'Exists' }] });
    expect(own.spec?.tolerations?.filter((t) => t.key === toleration.key)).toEqual([]);
  });

  test('of a Remote namespace must run on virtual nodes, each selector term with the type', async () => {
    await offloaded('away', { podOffloadingStrategy: 'Remote' });
    expect(required(await createPod('away', 'web'))).toEqual([{ matchExpressions: [type('In')] }]);
    await offloaded('chosen', { podOffloadingStrategy: 'Remote', clusterSelector: selector });
    expect(required(await createPod('chosen', 'web'))).toEqual([
      { matchExpressions: [zone('a'), type('In')] },
      { matchExpressions: [zone('b'), type('In')] },
    ]);
  });

  test('of a LocalAndRemote namespace with a selector may also run on nodes that are not virtual', async () => {
    await offloaded('mixed', { clusterSelector: selector });
    expect(required(await createPod('mixed', 'web'))).toEqual([
      ...selector.nodeSelectorTerms,
      { matchExpressions: [type('NotIn')] },
    ]);
  });

  test('keep their own terms, and what a DaemonSet pins them with', async () => {
    const matchFields = [{ key: 'metadata.name', operator: 'In', values: ['n1'] }];
    const own = [{ matchFields }, { matchExpressions: [{ key: 'gpu', operator: 'Exists' }] }];
    const affinity = { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: own } } };
    const terms = required(await createPod('chosen', 'pinned', { affinity })) ?? [];
    expect(terms).toHaveLength(4);
    expect(terms.slice(0, 2).map((t) => t.matchFields)).toEqual([matchFields, matchFields]);
    expect(terms[3]).toEqual({ matchExpressions: [{ key: 'gpu', operator: 'Exists' }, zone('b'), type('In')] });
  });

  test('of a Local namespace and those that chose the runtime class are unchanged', async () => {
    await offloaded('home', { podOffloadingStrategy: 'Local' });
    await cluster.api.mergePatch(
      namespaces,
      { name: 'home' },
      { metadata: { labels: { 'liqo.io/scheduling-enabled': 'true' } } },
    );
    expect((await createPod('home', 'web')).spec?.tolerations).not.toContainEqual(toleration);
    await create({ apiVersion: 'node.k8s.io/v1', kind: 'RuntimeClass', metadata: { name: 'liqo' }, handler: 'runc' });
    const pod = await until(() => createPod('chosen', 'classy', { runtimeClassName: 'liqo' }));
    expect(pod.spec?.tolerations).not.toContainEqual(toleration);
  });

  test('of a namespace that is labelled but not offloaded are refused until it is', async () => {
    await makeNamespace('early', { 'liqo.io/scheduling-enabled': 'true' });
    const pod = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { namespace: 'early', name: 'web' },
      spec: { containers: [{ name: 'a', image: 'a' }] },
    };
    const refusal = await create(pod);
    expect(refusal).toMatch(/admission webhook "pod.mutate.liqo.io" denied the request/);
    expect(refusal).toMatch(/NamespaceOffloading early\/offloading does not exist.*\(namespace_not_offloaded\)/);
    await create(offloading('early'));
    expect((await createPod('early', 'web')).spec?.tolerations).toContainEqual(toleration);
  });
});

describe('NamespaceOffloadings', () => {
  const long = 'n'.repeat(60);
  test.each([
    ['kube-system', {}, /kube-system is a system namespace.*\(namespace_reserved\)/],
    ['liqo', {}, /liqo is a system namespace.*\(namespace_reserved\)/],
    ['liqo-tenant-cons', {}, /system namespace.*\(namespace_reserved\)/],
    [long, {}, /65 characters, a namespace name has at most 63/],
    [
      'default',
      { namespaceMappingStrategy: 'EnforceSameName' as const },
      /"default" is reserved at every provider.*\(namespace_reserved\)/,
    ],
    [
      'plain',
      { namespaceMappingStrategy: 'SelectedName' as const, remoteNamespaceName: 'kube-public' },
      /spec.remoteNamespaceName: .*reserved/,
    ],
    [
      'plain',
      { namespaceMappingStrategy: 'SelectedName' as const, remoteNamespaceName: 'both-here' },
      /both-here, which namespace both of this cluster has.*\(already_exists\)/,
    ],
    [
      'plain',
      { clusterSelector: { nodeSelectorTerms: [{ matchExpressions: [{ key: 'a', operator: 'In' }] }] } },
      /needs at least one value/,
    ],
  ])('in %s with %j are refused', async (namespace, spec, message) => {
    if (namespace === long) await makeNamespace(long);
    expect(await create(offloading(namespace, spec))).toMatch(message);
    expect(await cluster.api.get(namespaceOffloadings, { namespace, name: 'offloading' })).toBeUndefined();
  });

  test('keep their mapping, and a changed strategy comes with a warning', async () => {
    const patch = (spec: object) =>
      kubectl([
        '-n',
        'both',
        'patch',
        'namespaceoffloading',
        'offloading',
        '--type=merge',
        '-p',
        JSON.stringify({ spec }),
      ]);
    expect(await patch({ namespaceMappingStrategy: 'EnforceSameName' })).toMatch(/namespaceMappingStrategy.*immutable/);
    expect(await patch({ podOffloadingStrategy: 'Remote' })).toMatch(
      /Warning: podOffloadingStrategy Remote holds for new pods/,
    );
  });
});

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

  test('need a quota of their user', async () => {
    expect(await create(shadow('web'), ...slice)).toMatch(/no Quota for user slice-1.*\(quota_missing\)/);
    await cluster.api.create(quotas, quota({ cpu: '2', memory: '1Gi', pods: '10' }));
    expect(await create(shadow('web'), ...slice)).toMatch(/created/);
    expect((await cluster.api.get(shadowPods, { namespace: 'apps-cons', name: 'web' }))?.metadata.labels).toMatchObject(
      { 'liqo.io/creator-user': 'slice-1' },
    );
  });

  test('carry the creator that we saw, not the one they claim', async () => {
    await create(shadow('liar', undefined, { ...origin, 'liqo.io/creator-user': 'somebody' }), ...slice);
    const read = async () =>
      (await cluster.api.get(shadowPods, { namespace: 'apps-cons', name: 'liar' }))?.metadata.labels?.[
        'liqo.io/creator-user'
      ];
    expect(await read()).toBe('slice-1');
    await patch('liar', { metadata: { labels: { 'liqo.io/creator-user': 'somebody' } } });
    expect(await read()).toBe('slice-1');
    await remove('liar');
  });

  test('must be of the consumer whose namespace it is', async () => {
    expect(await create(shadow('x', undefined, {}), ...slice)).toMatch(/offloading.liqo.io\/origin\] is missing/);
    expect(await create(shadow('x', undefined, { 'offloading.liqo.io/origin': 'other' }), ...slice)).toMatch(
      /is other, but namespace apps-cons is that of cons.*\(forbidden\)/,
    );
    expect(await create({ ...shadow('x'), metadata: { namespace: 'plain', name: 'x', labels: origin } })).toMatch(
      /namespace plain belongs to no consumer/,
    );
  });

  test('fit into the quota, and the refusal says what is asked and what is free', async () => {
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

  test('created at once never exceed it, and a deleted or finished one gives its share back at once', async () => {
    const answers = await Promise.all(Array.from({ length: 6 }, (_, i) => create(shadow(`burst-${i}`), ...slice)));
    expect(answers.filter((answer) => /created/.test(answer))).toHaveLength(3);
    expect(answers.filter((answer) => /free 0 of 2/.test(answer))).toHaveLength(3);
    const admitted = answers.flatMap((answer, i) => (/created/.test(answer) ? [`burst-${i}`] : []));
    await remove(admitted[0] ?? '');
    expect(await create(shadow('next'), ...slice)).toMatch(/created/);
    const next = { namespace: 'apps-cons', name: 'next' };
    await until(() =>
      cluster.api.mergePatch(pods, next, { status: { phase: 'Succeeded' } }, { subresource: 'status' }),
    );
    await until(async () => expect((await cluster.api.get(shadowPods, next))?.status?.phase).toBe('Succeeded'));
    expect(await create(shadow('after'), ...slice)).toMatch(/created/);
    for (const name of [...admitted, 'next', 'after']) await remove(name);
  });

  test('count as one of pods each', async () => {
    await setQuota({ resources: { cpu: '9', memory: '9Gi', pods: '1' } });
    await until(async () => expect(await create(shadow('second'), ...slice)).toMatch(/pods: requested 1, free 0 of 1/));
    await setQuota({ resources: { cpu: '9', memory: '9Gi', pods: '10' } });
  });

  test('under Hard enforcement request what they limit, and none are taken when the quota is cordoned', async () => {
    await setQuota({ limitsEnforcement: 'Hard' });
    await until(async () =>
      expect(await create(shadow('loose'), ...slice)).toMatch(
        /container app has a limit other than its request for cpu/,
      ),
    );
    await setQuota({ limitsEnforcement: 'None', cordoned: true });
    await until(async () => expect(await create(shadow('late'), ...slice)).toMatch(/cordoned.*\(quota_cordoned\)/));
    await setQuota({ cordoned: null });
    await until(async () => expect(await create(shadow('late'), ...slice)).toMatch(/created/));
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
  ])('with %j do not get past the sandbox', async (hostile, message) => {
    const answer = await create(shadow('hostile', { containers: [container('1m')], ...hostile }), ...slice);
    expect(answer).toMatch(new RegExp(`denied the request: .*${message}`));
  });

  test('change in images, deadline and tolerations only, and only by their own user', async () => {
    expect(await patch('late', { spec: { pod: { containers: [{ ...container('500m'), image: 'app:2' }] } } })).toMatch(
      /patched/,
    );
    expect(await patch('late', { spec: { pod: { containers: [container('1')] } } })).toMatch(
      /spec.pod.containers cannot change: accepted are/,
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
    expect(await create(resourceSlice('milan', 'both'))).toMatch(
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

  test('ForeignClusters get their label; VirtualNodes get defaults and never the name of a Node', async () => {
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
  });
});

describe('leaving', () => {
  test('takes the registration away, so that nothing is refused for want of an answer', async () => {
    end.abort();
    await Promise.all(running);
    const { api } = openCluster(await connectKubeconfig(server.kubeconfig), deps, new AbortController().signal);
    expect(await create(offloading('plain', {}, 'offloading'), '--dry-run=server')).toMatch(
      /failed calling webhook "nsoff.validate.liqo.io"/,
    );
    await removeAdmission({ api });
    await removeAdmission({ api });
    await until(async () => expect(await create(offloading('plain'))).toMatch(/created/));
    expect(
      await kubectl(['get', 'mutatingwebhookconfigurations,validatingwebhookconfigurations', '-o', 'name']),
    ).toMatch(/^$|No resources/);
  });
});
