/** Two peered clusters with everything that offloads pods on both sides, admission included; the tests play scheduler and kubelet. */
import { startAdmission } from '#agent/admission/admission.ts';
import { createVirtualNodeController } from '#agent/offloading/consumer/virtual-node/controller.ts';
import { NodeMetrics } from '#agent/offloading/consumer/virtual-node/node-metrics.ts';
import { createOffloadingControllers } from '#agent/offloading/offloading.ts';
import { tokenOpener } from '#agent/peering/keys/token-opener.ts';
import { createConnectCluster } from '#agent/runtime/connect-cluster.ts';
import { systemIds } from '#agent/runtime/ids.ts';
import { createHooks } from '#agent/webhooks.ts';
import type { KubeApi } from '#kube/model/types.ts';
import { namespaces, nodes, pods, serviceAccounts } from '#shared/domain/core-kinds.ts';
import type { Pod, PodSpec } from '#shared/domain/kube-object.ts';
import { systemNamespace } from '#shared/domain/liqo-keys.ts';
import { Registry } from '#shared/metrics/registry.ts';
import {
  type NamespaceOffloading,
  type NamespaceOffloadingSpec,
  namespaceOffloadings,
} from '#shared/schema/liqo/namespace-offloading.ts';
import { type ShadowPod, shadowPods } from '#shared/schema/liqo/shadow-pod.ts';
import { virtualNodes } from '#shared/schema/liqo/virtual-node.ts';
import { eventually } from '#test/harness/eventually.ts';
import type { ApiServer, TestApiServer } from '#test/harness/kube-apiserver.ts';
import { peer } from '../peering/broker-part.ts';
import {
  type More,
  type Pair,
  type PairSettings,
  startOwnPair,
  startPair,
  startUnsignedPair,
} from '../peering/clusters.ts';

const quick = { everyMs: 25, withinMs: 40_000 };
export const soon = <T>(what: string, look: () => Promise<T | undefined | null | false>): Promise<T> =>
  eventually(what, look, quick);

const portBase: Readonly<Record<string, number>> = { rome: 13_250, milan: 14_250 };

const registries = new Map<string, Registry>();
/** What the agent of that cluster serves as metrics. */
export function registryOf(clusterId: string): Registry {
  const known = registries.get(clusterId) ?? new Registry();
  registries.set(clusterId, known);
  return known;
}

/** Cluster `rome` is a consumer of `milan`, through a virtual node called `milan`. */
export const startOffloadingPair = (): Promise<Pair> => openOffloadingPair(startPair);

/** With API servers of which none signs a certificate. `further`: what else runs in each cluster; `peerBy`: how they peer, if not as usual. */
export const startUnsignedOffloadingPair = (
  settings: PairSettings,
  { further, peerBy }: { readonly further?: More; readonly peerBy?: typeof peer } = {},
): Promise<Pair<TestApiServer>> =>
  openOffloadingPair(
    (more) => startUnsignedPair(async (deps) => [...(await more(deps)), ...((await further?.(deps)) ?? [])], settings),
    peerBy,
  );

/** With API servers that the test may kill. */
export const startOwnOffloadingPair = (): Promise<Pair<TestApiServer>> => openOffloadingPair(startOwnPair);

async function openOffloadingPair<S extends ApiServer>(
  start: (more: More) => Promise<Pair<S>>,
  peerBy: typeof peer = peer,
): Promise<Pair<S>> {
  const pair = await start(async (deps) => {
    const { clusterId, clock, log } = deps;
    return [
      ...createOffloadingControllers(deps),
      createVirtualNodeController({
        ...deps,
        ids: systemIds,
        podIp: '127.0.0.1',
        kubeletPortBase: portBase[clusterId] ?? 15_250,
        nodeMetrics: new NodeMetrics(registryOf(clusterId), clock),
        connectPeer: createConnectCluster({ clock, log, openToken: tokenOpener(deps.cluster.api, systemNamespace) }),
        systemNamespace,
      }),
      await startAdmission({ ...deps, hooks: createHooks(deps), host: '127.0.0.1', port: 0, callHost: '127.0.0.1' }),
    ];
  });
  // The node of the provider is what it lends; one of the consumer would only be in the way.
  await pair.consumer.api.delete(nodes, { name: 'rome-1' });
  await peerBy(pair, { cpu: '4', memory: '8Gi', pods: '110' });
  await soon('the virtual node', async () => isReady(pair.consumer.api, 'milan')).catch(async (error: unknown) => {
    const found = await pair.consumer.api.get(virtualNodes, { namespace: 'liqo-tenant-milan', name: 'milan' });
    const node = await pair.consumer.api.get(nodes, { name: 'milan' });
    const output = JSON.stringify([found?.status?.conditions, node?.status?.conditions]);
    throw new Error(`the virtual node says ${output}`, { cause: error });
  });
  return pair;
}

export async function isReady(api: KubeApi, name: string): Promise<boolean> {
  const node = await api.get(nodes, { name });
  return node?.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false;
}

export async function makeNamespace(api: KubeApi, name: string): Promise<void> {
  await api.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  await soon(`the default account of ${name}`, () => api.get(serviceAccounts, { namespace: name, name: 'default' }));
}

export const offloadingOf = (api: KubeApi, namespace: string) =>
  api.get(namespaceOffloadings, { namespace, name: 'offloading' });

export async function offload(
  api: KubeApi,
  namespace: string,
  spec: Partial<NamespaceOffloadingSpec> = {},
  annotations: Record<string, string> = {},
): Promise<void> {
  await api.create(namespaceOffloadings, {
    apiVersion: 'offloading.liqo.io/v1beta1',
    kind: 'NamespaceOffloading',
    metadata: { namespace, name: 'offloading', annotations },
    spec: spec as NamespaceOffloadingSpec,
  });
}

export const reaches = (api: KubeApi, namespace: string, phase: string): Promise<NamespaceOffloading> =>
  soon(`${namespace} to be ${phase}`, async () => {
    const found = await offloadingOf(api, namespace);
    return found?.status?.offloadingPhase === phase && found;
  });

/** A namespace that is offloaded from `rome` and where its provider can make pods. */
export async function offloadedNamespace(
  { consumer, provider }: Pair,
  name: string,
  spec: Partial<NamespaceOffloadingSpec> = {},
  annotations: Record<string, string> = {},
): Promise<void> {
  await makeNamespace(consumer.api, name);
  await offload(consumer.api, name, spec, annotations);
  await reaches(consumer.api, name, 'Ready');
  const account = { namespace: `${name}-${consumer.id}`, name: 'default' };
  await soon('the account of its remote namespace', () => provider.api.get(serviceAccounts, account));
}

export const pod = (
  namespace: string,
  name: string,
  spec: Partial<PodSpec> & Record<string, unknown> = {},
  metadata: { labels?: Record<string, string>; annotations?: Record<string, string> } = {},
): Pod =>
  ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { namespace, name, ...metadata },
    spec: { containers: [{ name: 'app', image: 'app:1' }], ...spec },
  }) as Pod;

export const shadowOf = (api: KubeApi, namespace: string, name: string): Promise<ShadowPod> =>
  soon(`ShadowPod ${namespace}/${name}`, () => api.get(shadowPods, { namespace, name }));
export const podAt = (api: KubeApi, namespace: string, name: string): Promise<Pod> =>
  soon(`pod ${namespace}/${name}`, () => api.get(pods, { namespace, name }));

const types = ['PodScheduled', 'Initialized', 'ContainersReady', 'Ready'];

/** What a kubelet of the provider writes. */
export async function report(
  api: KubeApi,
  namespace: string,
  name: string,
  phase: 'Running' | 'Succeeded' | 'Failed',
  more: Record<string, unknown> = {},
): Promise<Pod> {
  const { spec } = await podAt(api, namespace, name);
  const at = new Date().toISOString().replace(/\.\d+Z$/, 'Z');
  const serving = phase === 'Running';
  const state = serving
    ? { running: { startedAt: at } }
    : { terminated: { exitCode: phase === 'Failed' ? 1 : 0, startedAt: at, finishedAt: at } };
  const status = {
    phase,
    podIP: '10.9.9.9',
    podIPs: [{ ip: '10.9.9.9' }],
    startTime: at,
    conditions: types.map((type) => ({ type, status: serving ? 'True' : 'False', lastTransitionTime: at })),
    containerStatuses: (spec?.containers ?? []).map((container) => ({
      name: container.name,
      ready: serving,
      started: serving,
      restartCount: 0,
      image: container.image,
      imageID: 'sha256:1',
      containerID: 'containerd://1',
      resources: container.resources ?? {},
      state,
    })),
    ...more,
  };
  return api.mergePatch(pods, { namespace, name }, { status }, { subresource: 'status' });
}
