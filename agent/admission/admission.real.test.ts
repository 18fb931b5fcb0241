/** Admission as a real API server asks for it: registration, pods and NamespaceOffloadings, with kubectl. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createHooks } from '#agent/webhooks.ts';
import { connectKubeconfig } from '#kube/http/kubeconfig.ts';
import type { Cluster } from '#kube/model/types.ts';
import { openCluster } from '#kube/open-cluster.ts';
import {
  mutatingWebhookConfigurations,
  namespaces,
  secrets,
  validatingWebhookConfigurations,
} from '#shared/domain/core-kinds.ts';
import type { Pod, PodSpec, ResourceType } from '#shared/domain/kube-object.ts';
import { type NamespaceOffloadingSpec, namespaceOffloadings } from '#shared/schema/liqo/namespace-offloading.ts';
import { inOrder } from '#test/harness/in-order.ts';
import { deps, offloading, startWebhookCluster, until, type WebhookCluster } from '#test/harness/webhook-cluster.ts';
import { startAdmission } from './admission.ts';

let under: WebhookCluster;
let cluster: Cluster;
let { kubectl, create, makeNamespace }: Pick<WebhookCluster, 'kubectl' | 'create' | 'makeNamespace'> =
  {} as WebhookCluster;
// In this order: each test finds what the ones before it left.
inOrder('file');
beforeAll(async () => {
  under = await startWebhookCluster();
  ({ cluster, kubectl, create, makeNamespace } = under);
}, 900_000);
afterAll(async () => await under?.stop());

async function createPod(namespace: string, name: string, spec: Partial<PodSpec> = {}): Promise<Pod> {
  const podSpec = { containers: [{ name: 'app', image: 'app' }], ...spec };
  const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { namespace, name }, spec: podSpec };
  const output = await kubectl(['create', '-o', 'json', '-f', '-'], pod);
  expect(output).toMatch(/^\{/);
  return JSON.parse(output) as Pod;
}

/** A namespace that is offloaded already, as the pod webhook finds it. */
async function offloaded(name: string, spec: Partial<NamespaceOffloadingSpec>): Promise<void> {
  await makeNamespace(name, { 'liqo.io/scheduling-enabled': 'true' });
  expect(await create(offloading(name, spec))).toMatch(/created/);
}

describe('registration', () => {
  test('is restored after an outside change', async () => {
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
    const hooks = createHooks({ ...deps, cluster, clusterId: 'here' });
    const common = { ...deps, cluster, hooks, host: '127.0.0.1', port: 0, callHost: '127.0.0.1' };
    const [a, b] = await Promise.all([startAdmission(common), startAdmission(common)]);
    const stored = await cluster.api.get(secrets, { namespace: 'liqo', name: 'isthmus-webhook-certs' });
    const [ca = '', path = ''] = ['ca.crt', 'path'].map((key) =>
      Buffer.from(stored?.data?.[key] ?? '', 'base64').toString(),
    );
    const secret = `/${path}/mutate/pod`;
    for (const { port } of [a, b]) {
      expect(await fetchStatus(port, ca, secret)).toBe(405);
      expect(await fetchStatus(port, ca, '/mutate/pod')).toBe(404);
    }
    stop.abort();
    await Promise.all([a.run(stop.signal), b.run(stop.signal)]);
    // The one that keeps running takes the new certificate over, and the API server goes on calling it throughout.
    await until(async () => expect(await fetchStatus(under.admission.port, ca, secret)).toBe(405));
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

  test('B041 of a LocalAndRemote namespace tolerate virtual nodes and keep their affinity', async () => {
    await offloaded('both', {});
    const pod = await createPod('both', 'web');
    expect(pod.spec?.tolerations).toContainEqual(toleration);
    expect(pod.spec?.affinity).toBeUndefined();
    const own = await createPod('both', 'own', { tolerations: [{ operator: 'Exists' }] });
    expect(own.spec?.tolerations?.filter((t) => t.key === toleration.key)).toEqual([]);
  });

  test('B042 B043 of a Remote namespace must run on virtual nodes, each selector term with the type', async () => {
    await offloaded('away', { podOffloadingStrategy: 'Remote' });
    expect(required(await createPod('away', 'web'))).toEqual([{ matchExpressions: [type('In')] }]);
    await offloaded('chosen', { podOffloadingStrategy: 'Remote', clusterSelector: selector });
    expect(required(await createPod('chosen', 'web'))).toEqual([
      { matchExpressions: [zone('a'), type('In')] },
      { matchExpressions: [zone('b'), type('In')] },
    ]);
  });

  test('for Windows are refused in a Remote namespace, and stay home with a warning in a LocalAndRemote one', async () => {
    const containers = [{ name: 'app', image: 'app' }];
    const windows = (namespace: string) => ({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { namespace, name: 'windows' },
      spec: { containers, os: { name: 'windows' } },
    });
    expect(await create(windows('away'))).toMatch(/is for Windows .* \(invalid_input\)/);
    expect(await create(windows('both'))).toMatch(/Warning: .* stays on nodes of this cluster/);
  });

  test('B044 of a LocalAndRemote namespace with a selector may also run on nodes that are not virtual', async () => {
    await offloaded('mixed', { clusterSelector: selector });
    expect(required(await createPod('mixed', 'web'))).toEqual([
      ...selector.nodeSelectorTerms,
      { matchExpressions: [type('NotIn')] },
    ]);
  });

  test('B045 B046 keep their own terms, and what a DaemonSet pins them with', async () => {
    const matchFields = [{ key: 'metadata.name', operator: 'In', values: ['n1'] }];
    const own = [{ matchFields }, { matchExpressions: [{ key: 'gpu', operator: 'Exists' }] }];
    const affinity = { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: own } } };
    const terms = required(await createPod('chosen', 'pinned', { affinity })) ?? [];
    const gpu = { key: 'gpu', operator: 'Exists' };
    expect(terms).toEqual([
      { matchFields, matchExpressions: [zone('a'), type('In')] },
      { matchFields, matchExpressions: [zone('b'), type('In')] },
      { matchExpressions: [gpu, zone('a'), type('In')] },
      { matchExpressions: [gpu, zone('b'), type('In')] },
    ]);
  });

  test('B047 B048 of a Local namespace and those that chose the runtime class are unchanged', async () => {
    await offloaded('home', { podOffloadingStrategy: 'Local' });
    await cluster.api.mergePatch(
      namespaces,
      { name: 'home' },
      { metadata: { labels: { 'liqo.io/scheduling-enabled': 'true' } } },
    );
    const home = await createPod('home', 'web');
    expect(home.spec?.tolerations).not.toContainEqual(toleration);
    expect(home.spec?.affinity).toBeUndefined();
    await create({ apiVersion: 'node.k8s.io/v1', kind: 'RuntimeClass', metadata: { name: 'liqo' }, handler: 'runc' });
    const pod = await until(() => createPod('chosen', 'classy', { runtimeClassName: 'liqo' }));
    expect(pod.spec?.tolerations).not.toContainEqual(toleration);
  });

  test('B074 of a namespace that is labelled but not offloaded are refused until it is', async () => {
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
      { clusterSelector: { nodeSelectorTerms: [{ matchExpressions: [{ key: 'a', operator: 'NotIn' }] }] } },
      /needs at least one value/,
    ],
    [
      'plain',
      { namespaceMappingStrategy: 'SelectedName' as const },
      /remoteNamespaceName is required with namespaceMappingStrategy SelectedName/,
    ],
    ['plain', { podOffloadingStrategy: 'Everywhere' as never }, /Unsupported value: "Everywhere"/],
    ['plain', { namespaceMappingStrategy: 'Somehow' as never }, /Unsupported value: "Somehow"/],
  ])('B050 B053 B054 B055 in %s with %j are refused', async (namespace, spec, message) => {
    if (namespace === long) await makeNamespace(long);
    expect(await create(offloading(namespace, spec))).toMatch(message);
    expect(await cluster.api.get(namespaceOffloadings, { namespace, name: 'offloading' })).toBeUndefined();
  });

  test('B049 are called offloading', async () => {
    expect(await create(offloading('plain', {}, 'wrong'))).toMatch(/accepted is "offloading"|must be 'offloading'/);
    expect(await cluster.api.get(namespaceOffloadings, { namespace: 'plain', name: 'wrong' })).toBeUndefined();
  });

  test('B075 that ask for it pass our checks', async () => {
    await makeNamespace('skipping');
    const skip = { 'liqo.io/webhook-skip': 'true' };
    const bad = { clusterSelector: { nodeSelectorTerms: [{ matchExpressions: [{ key: 'a', operator: 'NotIn' }] }] } };
    const object = offloading('skipping', bad);
    expect(await create(object)).toMatch(/needs at least one value/);
    expect(await create({ ...object, metadata: { ...object.metadata, labels: skip } })).toMatch(/created/);
  });

  test('B051 B052 keep their mapping, and a changed strategy comes with a warning', async () => {
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
    const spec = async () =>
      (await cluster.api.get(namespaceOffloadings, { namespace: 'both', name: 'offloading' }))?.spec;
    const before = await spec();
    expect(await patch({ namespaceMappingStrategy: 'EnforceSameName' })).toMatch(/namespaceMappingStrategy.*immutable/);
    expect(await patch({ remoteNamespaceName: 'elsewhere' })).toMatch(/remoteNamespaceName.*immutable/);
    expect(await spec()).toEqual(before);
    expect(await patch({ podOffloadingStrategy: 'Remote' })).toMatch(
      /Warning: podOffloadingStrategy Remote holds for new pods/,
    );
  });
});

describe('leaving', () => {
  test('nothing is refused for want of an answer once the registration is gone', async () => {
    await under.leave();
    const { api } = openCluster(await connectKubeconfig(under.kubeconfig), deps, new AbortController().signal);
    expect(await create(offloading('plain', {}, 'offloading'), '--dry-run=server')).toMatch(
      /failed calling webhook "nsoff.validate.liqo.io"/,
    );
    for (const type of [mutatingWebhookConfigurations, validatingWebhookConfigurations])
      await api.delete(type as ResourceType, { name: 'isthmus-webhook' });
    await until(async () => expect(await create(offloading('plain'))).toMatch(/created/));
    expect(
      await kubectl(['get', 'mutatingwebhookconfigurations,validatingwebhookconfigurations', '-o', 'name']),
    ).toMatch(/^$|No resources/);
  });
});
