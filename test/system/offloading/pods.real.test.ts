/** Pods of one namespace on two peered clusters: how they are shaped, followed, and end. */

import { afterAll, beforeAll, expect, test } from 'vitest';
import { namespaceRules } from '#cli/install/agent-rights.ts';
import { agentRole } from '#shared/domain/agent-roles.ts';
import { configMaps, coreEvents, pods } from '#shared/domain/core-kinds.ts';
import type { PodSpec } from '#shared/domain/kube-object.ts';
import { shadowPods } from '#shared/schema/liqo/shadow-pod.ts';
import { virtualNodes } from '#shared/schema/liqo/virtual-node.ts';
import { acceptGuests } from '#test/harness/guest-policy.ts';
import type { TestApiServer } from '#test/harness/kube-apiserver.ts';
import { lacking, readAsked, unused } from '#test/harness/used-rights.ts';
import type { Pair } from '../peering/clusters.ts';
import {
  offloadedNamespace,
  pod,
  podAt,
  registryOf,
  report,
  shadowOf,
  soon,
  startOwnOffloadingPair,
} from './offloading-clusters.ts';

const startedAt = Date.now();
let pair: Pair<TestApiServer>;
const remote = 'demo-rome';
beforeAll(async () => {
  pair = await startOwnOffloadingPair();
  const runtimeClasses = ['patched', 'own', 'annotated'];
  await acceptGuests(there(), { nodeLabels: ['disk', 'pool'], tolerations: ['gpu', 'guests'], runtimeClasses });
  await offloadedNamespace(pair, 'demo');
}, 900_000);
afterAll(async () => await pair?.stop());

const here = () => pair.consumer.api;
const there = () => pair.provider.api;
const local = (name: string) => here().get(pods, { namespace: 'demo', name });
const start = (name: string, spec: Record<string, unknown> = {}, metadata: Parameters<typeof pod>[3] = {}) =>
  here().create(pods, pod('demo', name, { nodeName: 'milan', ...spec }, metadata));
const remove = (name: string) => here().delete(pods, { namespace: 'demo', name }, { gracePeriodSeconds: 0 });
/** Everything that was to be done before it has been done when a pod made now is at the provider. */
async function settle(marker: string): Promise<void> {
  await start(marker);
  await podAt(there(), remote, marker);
  await remove(marker);
}

test('B020 a pod that completes stays completed on both sides, and no other is made', async () => {
  await start('done', { restartPolicy: 'Never' });
  const { metadata } = await report(there(), remote, 'done', 'Succeeded');
  await soon('the end here', async () => (await local('done'))?.status?.phase === 'Succeeded');
  await soon(
    'the end of the ShadowPod',
    async () => (await shadowOf(there(), remote, 'done')).status?.phase === 'Succeeded',
  );
  await there().delete(pods, { namespace: remote, name: 'done' }, { gracePeriodSeconds: 0, uid: metadata.uid ?? '' });
  await settle('after-done');
  expect(await there().get(pods, { namespace: remote, name: 'done' })).toBeUndefined();
  expect((await local('done'))?.status?.phase).toBe('Succeeded');
  await remove('done');
  await soon('nothing left', async () => !(await there().get(shadowPods, { namespace: remote, name: 'done' })));
});

test('B021 a pod that failed while the agent was down is Failed here, and no other is made', async () => {
  await start('crash', { restartPolicy: 'Never' });
  await podAt(there(), remote, 'crash');
  await pair.consumer.stopAgent();
  await report(there(), remote, 'crash', 'Failed');
  await soon(
    'the end of the ShadowPod',
    async () => (await shadowOf(there(), remote, 'crash')).status?.phase === 'Failed',
  );
  await there().delete(pods, { namespace: remote, name: 'crash' }, { gracePeriodSeconds: 0 });
  await pair.consumer.startAgent();
  const ended = await soon('the end here', async () => {
    const found = await local('crash');
    return found?.status?.phase === 'Failed' && found;
  });
  expect(ended.status?.reason).toBe('RemotePodTerminated');
  await soon('admission again', () => settle('after-crash').then(() => true));
  expect(await there().get(pods, { namespace: remote, name: 'crash' })).toBeUndefined();
  await remove('crash');
});

test('a ShadowPod that is deleted at the provider is made again, as the pod at home says', async () => {
  await start('again');
  await report(there(), remote, 'again', 'Running');
  await soon('the pod to run', async () => (await local('again'))?.status?.phase === 'Running');
  const first = await shadowOf(there(), remote, 'again');
  await there().delete(shadowPods, { namespace: remote, name: 'again' });
  const second = await soon('another ShadowPod', async () => {
    const found = await there().get(shadowPods, { namespace: remote, name: 'again' });
    return found?.metadata.uid !== first.metadata.uid && found;
  });
  expect(second.spec).toEqual(first.spec);
  await remove('again');
  await soon('nothing left', async () => !(await there().get(shadowPods, { namespace: remote, name: 'again' })));
});

const labels = { app: 'shaped', 'pod-template-hash': 'x', 'controller-revision-hash': 'y', secret: 'mine' };
const mine = { key: 'gpu', operator: 'Exists', effect: 'NoSchedule' };
const affinity: PodSpec['affinity'] = {
  nodeAffinity: {
    requiredDuringSchedulingIgnoredDuringExecution: {
      nodeSelectorTerms: [{ matchExpressions: [{ key: 'liqo.io/type', operator: 'In', values: ['virtual-node'] }] }],
    },
  },
  podAntiAffinity: {
    requiredDuringSchedulingIgnoredDuringExecution: [
      { topologyKey: 'zone', labelSelector: { matchLabels: { app: 'other' } } },
    ],
  },
};

test('B076 B077 B078 what a pod says about nodes of its own cluster stays there; what makes it goes along', async () => {
  await here().postPath('/apis/scheduling.k8s.io/v1/priorityclasses', {
    apiVersion: 'scheduling.k8s.io/v1',
    kind: 'PriorityClass',
    metadata: { name: 'high' },
    value: 1000,
  });
  const alias = { ip: '192.0.2.7', hostnames: ['db.example'] };
  const shaped = {
    nodeSelector: { 'liqo.io/type': 'virtual-node' },
    affinity,
    priorityClassName: 'high',
    schedulerName: 'mine',
    hostNetwork: true,
    hostPID: true,
    hostIPC: true,
    tolerations: [mine],
    hostAliases: [alias],
    dnsPolicy: 'None',
    dnsConfig: { nameservers: ['192.0.2.53'], searches: ['example'] },
    securityContext: { runAsUser: 1000, fsGroup: 7 },
    imagePullSecrets: [{ name: 'pull' }],
    terminationGracePeriodSeconds: 7,
    subdomain: 'sub',
    hostname: 'shaped',
    shareProcessNamespace: false,
    topologySpreadConstraints: [
      {
        maxSkew: 1,
        topologyKey: 'kubernetes.io/hostname',
        whenUnsatisfiable: 'DoNotSchedule',
        labelSelector: { matchLabels: { app: 'shaped' } },
      },
    ],
    initContainers: [
      { name: 'first', image: 'init:1' },
      { name: 'sidecar', image: 'side:1', restartPolicy: 'Always' },
    ],
  };
  // Admission hears of a new class a moment later.
  await soon('a pod of the class is let in', () => start('shaped', shaped, { labels }));
  const { spec } = await shadowOf(there(), remote, 'shaped');
  for (const field of ['nodeName', 'nodeSelector', 'affinity', 'priorityClassName', 'priority', 'schedulerName']) {
    expect(spec.pod).not.toHaveProperty(field);
  }
  expect(spec.pod).toMatchObject({
    hostNetwork: false,
    hostPID: false,
    hostIPC: false,
    automountServiceAccountToken: false,
    hostAliases: expect.arrayContaining([alias]),
    dnsPolicy: 'None',
    dnsConfig: { nameservers: ['192.0.2.53'], searches: ['example'] },
    securityContext: { runAsUser: 1000, fsGroup: 7 },
    imagePullSecrets: [{ name: 'pull' }],
    terminationGracePeriodSeconds: 7,
    subdomain: 'sub',
    hostname: 'shaped',
    topologySpreadConstraints: [{ topologyKey: 'kubernetes.io/hostname' }],
    initContainers: [{ name: 'first' }, { name: 'sidecar', restartPolicy: 'Always' }],
  });
  expect(spec.pod.tolerations).toContainEqual(mine);
  expect(spec.pod.tolerations?.filter(({ key }) => key === 'virtual-node.liqo.io/not-allowed')).toEqual([]);
  await remove('shaped');
});

test('B079 B080 B084 B127 the patch of the virtual node shapes its pods from the moment it changes', async () => {
  const required = {
    requiredDuringSchedulingIgnoredDuringExecution: {
      nodeSelectorTerms: [{ matchExpressions: [{ key: 'pool', operator: 'In', values: ['guests'] }] }],
    },
  };
  const offloadingPatch = {
    nodeSelector: { disk: 'ssd' },
    tolerations: [{ key: 'guests', operator: 'Exists' }],
    affinity: { nodeAffinity: required },
    runtimeClassName: 'patched',
    labelsNotReflected: ['secret'],
    annotationsNotReflected: ['hidden'],
  };
  const ref = { namespace: 'liqo-tenant-milan', name: 'milan' };
  for (const name of ['own', 'annotated']) {
    await here().postPath('/apis/node.k8s.io/v1/runtimeclasses', {
      apiVersion: 'node.k8s.io/v1',
      kind: 'RuntimeClass',
      metadata: { name },
      handler: 'runc',
    });
  }
  await here().mergePatch(virtualNodes, ref, { spec: { offloadingPatch } });
  // The watch tells the agent a moment later; a pod made before that is not made again.
  await soon('the patch to hold', async () => {
    await remove('probe');
    await soon('no probe', async () => !(await local('probe')));
    await soon('no probe there', async () => !(await there().get(shadowPods, { namespace: remote, name: 'probe' })));
    await start('probe');
    return (await shadowOf(there(), remote, 'probe')).spec.pod.nodeSelector?.disk === 'ssd';
  });
  const annotations = { hidden: 'x', shown: 'y' };
  await start('patched', { tolerations: [mine] }, { labels, annotations });
  await soon('an own runtime class', () => start('own', { runtimeClassName: 'own' }));
  const requested = { 'liqo.io/remote-runtime-class-name': 'annotated' };
  await start('annotated', { runtimeClassName: 'own' }, { annotations: requested });
  const patched = await shadowOf(there(), remote, 'patched');
  expect(patched.spec.pod).toMatchObject({
    nodeSelector: { disk: 'ssd' },
    affinity: { nodeAffinity: required },
    runtimeClassName: 'patched',
  });
  expect(patched.spec.pod.tolerations?.map(({ key }) => key)).toEqual(expect.arrayContaining(['gpu', 'guests']));
  expect(patched.metadata.labels).toMatchObject({ app: 'shaped' });
  expect(patched.metadata.labels).not.toHaveProperty('secret');
  expect(patched.metadata.annotations).toMatchObject({ shown: 'y' });
  expect(patched.metadata.annotations).not.toHaveProperty('hidden');
  expect((await shadowOf(there(), remote, 'own')).spec.pod.runtimeClassName).toBe('own');
  expect((await shadowOf(there(), remote, 'annotated')).spec.pod.runtimeClassName).toBe('annotated');
  await here().mergePatch(virtualNodes, ref, { spec: { offloadingPatch: null } });
  for (const name of ['probe', 'patched', 'own', 'annotated']) await remove(name);
});

test.each([
  ['B081', 'hard', {}, { requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey: 'kubernetes.io/hostname' }] }],
  [
    'B082',
    'soft',
    { 'liqo.io/anti-affinity-labels': 'app' },
    {
      preferredDuringSchedulingIgnoredDuringExecution: [
        { weight: 1, podAffinityTerm: { labelSelector: { matchLabels: { app: 'shaped' } } } },
      ],
    },
  ],
  ['B083', 'propagate', {}, affinity.podAntiAffinity],
])('%s the anti-affinity preset %s arrives at the provider', async (id, preset, more, expected) => {
  const name = `preset-${id.toLowerCase()}`;
  await start(name, { affinity }, { labels, annotations: { 'liqo.io/anti-affinity-preset': preset, ...more } });
  const { spec } = await shadowOf(there(), remote, name);
  expect(spec.pod.affinity?.podAntiAffinity).toMatchObject(expected ?? {});
  expect(JSON.stringify(spec.pod.affinity)).not.toMatch(/-hash/);
  await remove(name);
});

test('B085 B110 labels, image, sizes, deadline, tolerations and ephemeral containers of a living pod reach the pod at the provider', async () => {
  const resources = { requests: { cpu: '100m', memory: '64Mi' } };
  await start('living', { containers: [{ name: 'app', image: 'app:1', resources }] });
  await report(there(), remote, 'living', 'Running');
  await soon('running', async () => (await local('living'))?.status?.phase === 'Running');
  const ref = { namespace: 'demo', name: 'living' };
  const before = await there().get(pods, { namespace: remote, name: 'living' });
  await here().jsonPatch(pods, ref, [
    { op: 'add', path: '/metadata/labels', value: { 'liqo.io/shadowPod': 'true', tier: 'front' } },
    { op: 'replace', path: '/spec/containers/0/image', value: 'app:2' },
    { op: 'add', path: '/spec/activeDeadlineSeconds', value: 3600 },
    { op: 'add', path: '/spec/tolerations/-', value: mine },
  ]);
  await here().jsonPatch(
    pods,
    ref,
    [{ op: 'replace', path: '/spec/containers/0/resources/requests/cpu', value: '200m' }],
    { subresource: 'resize' },
  );
  const debug = { name: 'debug', image: 'debug:1', terminationMessagePolicy: 'File', imagePullPolicy: 'IfNotPresent' };
  await here().jsonPatch(pods, ref, [{ op: 'add', path: '/spec/ephemeralContainers', value: [debug] }], {
    subresource: 'ephemeralcontainers',
  });
  const after = await soon('all changes there', async () => {
    const found = await there().get(pods, { namespace: remote, name: 'living' });
    const container = found?.spec?.containers[0];
    return (
      found?.metadata.labels?.tier === 'front' &&
      container?.image === 'app:2' &&
      container.resources?.requests?.cpu === '200m' &&
      found.spec?.activeDeadlineSeconds === 3600 &&
      found.spec.tolerations?.some(({ key }) => key === 'gpu') &&
      found.spec.ephemeralContainers?.[0]?.name === 'debug' &&
      found
    );
  });
  expect(after.metadata.uid).toBe(before?.metadata.uid);
  expect((await shadowOf(there(), remote, 'living')).metadata.labels?.tier).toBe('front');
  await report(there(), remote, 'living', 'Running', {
    ephemeralContainerStatuses: [
      { name: 'debug', ready: false, restartCount: 0, image: 'debug:1', imageID: '', state: { running: {} } },
    ],
  });
  await soon(
    'the debug container running here',
    async () => (await local('living'))?.status?.ephemeralContainerStatuses?.[0]?.state?.running !== undefined,
  );
  await remove('living');
});

test('a pod that grows beyond the quota says why it does not grow there, goes on being followed, and grows when it asks for less', async () => {
  const resources = { requests: { cpu: '100m' } };
  await start('grows', { containers: [{ name: 'app', image: 'app:1', resources }] });
  await report(there(), remote, 'grows', 'Running');
  await soon('running', async () => (await local('grows'))?.status?.phase === 'Running');
  const resize = (value: string) =>
    here().jsonPatch(
      pods,
      { namespace: 'demo', name: 'grows' },
      [{ op: 'replace', path: '/spec/containers/0/resources/requests/cpu', value }],
      { subresource: 'resize' },
    );
  await resize('900');
  const output = await soon('why', async () =>
    (await here().list(coreEvents, { namespace: 'demo' })).find(
      ({ involvedObject, reason }) => involvedObject.name === 'grows' && reason === 'FailedReflection',
    ),
  );
  expect(output.message).toMatch(/refused the change of the pod, which goes on as it was: .*cpu/);
  await report(there(), remote, 'grows', 'Running', { message: 'still here' });
  await soon('its status here', async () => (await local('grows'))?.status?.message === 'still here');
  const cpu = async () => (await shadowOf(there(), remote, 'grows')).spec.pod.containers[0]?.resources?.requests?.cpu;
  expect(await cpu()).toBe('100m');
  await resize('200m');
  await soon('the new size', async () => (await cpu()) === '200m');
  await remove('grows');
});

test('B126 what is reflected is counted by namespace, kind, provider and node', async () => {
  const counted = (kind: string, what: 'item' | 'error' = 'item'): number => {
    const labels = `{namespace="demo",reflector_resource="${kind}",cluster_id="milan",node_name="milan"}`;
    const line = `liqo_virtual_kubelet_reflection_${what}_counter${labels} `;
    const found = registryOf('rome')
      .text()
      .split('\n')
      .find((one) => one.startsWith(line));
    return Number(found?.slice(line.length) ?? 0);
  };
  // Pods of earlier tests may be on their way out: the counter says what is there now.
  const isCounted = async (present: boolean): Promise<boolean> => {
    const names = (await there().list(shadowPods, { namespace: remote })).map(({ metadata }) => metadata.name);
    return names.includes('counted') === present && counted('Pod') === names.length;
  };
  const before = counted('ConfigMap');
  await start('counted');
  await shadowOf(there(), remote, 'counted');
  const settings = { namespace: 'demo', name: 'settings' };
  await here().create(configMaps, { apiVersion: 'v1', kind: 'ConfigMap', metadata: settings, data: { a: 'b' } });
  await soon('the copy', () => there().get(configMaps, { namespace: remote, name: 'settings' }));
  await soon('both counted', async () => (await isCounted(true)) && counted('ConfigMap') > before);
  await remove('counted');
  await soon('the pod is not counted any more', () => isCounted(false));
  const failed = counted('ConfigMap', 'error');
  await pair.provider.server.kill();
  try {
    await here().mergePatch(configMaps, settings, { data: { a: 'c' } });
    await soon('a failure counted', async () => counted('ConfigMap', 'error') > failed);
  } finally {
    await pair.provider.server.start();
  }
  await soon('the change', async () => {
    const copy = await there().get(configMaps, { namespace: remote, name: 'settings' });
    return copy?.data?.a === 'c';
  });
});

test('B115 a restart of the agent writes nothing about fifty running pods', async () => {
  const names = Array.from({ length: 50 }, (_, i) => `many-${i}`);
  await Promise.all(names.map((name) => start(name)));
  await Promise.all(names.map((name) => report(there(), remote, name, 'Running')));
  const everything = async () => ({
    here: await here().list(pods, { namespace: 'demo' }),
    there: await there().list(shadowPods, { namespace: remote }),
  });
  const versions = (list: readonly { metadata: { name: string; resourceVersion?: string } }[]) =>
    Object.fromEntries(
      list.flatMap(({ metadata }) =>
        metadata.name.startsWith('many-') ? [[metadata.name, metadata.resourceVersion]] : [],
      ),
    );
  const looks: string[] = [];
  const running = await soon('all running, and nothing written about them for a second', async () => {
    const now = await everything();
    const isDone = now.here.filter(({ status }) => status?.phase === 'Running').length === 50;
    looks.push(JSON.stringify([versions(now.here), versions(now.there)]));
    await pair.clock.sleep(1_000);
    const isAtRest = looks.at(-1) === looks.at(-2);
    return isDone && isAtRest && now.there.every(({ status }) => status?.phase === 'Running') && now;
  });
  await pair.consumer.stopAgent();
  await pair.consumer.startAgent();
  await soon('admission again', () => settle('after-restart').then(() => true));
  const after = await everything();
  expect(versions(after.here)).toEqual(versions(running.here));
  expect(versions(after.there)).toEqual(versions(running.there));
  await Promise.all(names.map(remove));
});

test('the agents of both clusters asked for nothing that they have no right to, and used each right that they have in single namespaces', async () => {
  const [consumer, provider] = await Promise.all(
    [pair.consumer, pair.provider].map(({ server }) => readAsked(server.dir, startedAt)),
  );
  expect(lacking(consumer ?? [])).toEqual([]);
  expect(lacking(provider ?? [])).toEqual([]);
  expect(unused(namespaceRules[agentRole.guest], provider ?? [])).toEqual([]);
  // No volume moves here: test/system/whole-clusters uses these.
  expect(unused(namespaceRules[agentRole.offloaded], consumer ?? [])).toEqual([
    'create persistentvolumeclaims',
    'create pods',
    'delete persistentvolumeclaims',
    'get pods/log',
  ]);
});
