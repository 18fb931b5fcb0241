/** Two real API servers as consumer `cons` and provider `prov`, and a player for the provider's part: it turns ShadowPods into Pods and runs them. */

import { connectKubeconfig } from '#kube/http/kubeconfig.ts';
import type { Cluster } from '#kube/model/types.ts';
import { openCluster } from '#kube/open-cluster.ts';
import { namespaces, nodes, pods, secrets, serviceAccounts } from '#shared/domain/core-kinds.ts';
import type { Node, Pod } from '#shared/domain/kube-object.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { peeringPolicies } from '#shared/schema/isthmus/peering-policy.ts';
import { namespaceMaps } from '#shared/schema/liqo/namespace-map.ts';
import { type ShadowPod, shadowPods } from '#shared/schema/liqo/shadow-pod.ts';
import { type VirtualNodeSpec, virtualNodes } from '#shared/schema/liqo/virtual-node.ts';
import { leaseApiServer } from './api-server-pool/lease.ts';
import { eventually } from './eventually.ts';
import type { ApiServer, TestApiServer } from './kube-apiserver.ts';
import { startOwnKindsServer } from './own-kinds.ts';

export const tenantNamespace = 'liqo-tenant-prov';
const deps = { clock: systemClock, log: silentLog };

export interface OffloadingClusters<S extends ApiServer = ApiServer> {
  readonly consumer: Cluster;
  readonly provider: Cluster;
  readonly servers: { readonly consumer: S; readonly provider: S };
  /** What the player does with pods that are being deleted at the provider: end them (default) or leave them. */
  endsPods: boolean;
  stop(): Promise<void>;
}

async function ready(api: Cluster['api'], namespace: string): Promise<void> {
  await api.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
  await eventually(`the default service account of ${namespace}`, () =>
    api.get(serviceAccounts, { namespace, name: 'default' }),
  );
}

export const startOffloadingClusters = (localNamespaces: readonly string[]): Promise<OffloadingClusters> =>
  openOffloadingClusters(localNamespaces, leaseApiServer);

/** With API servers that the test may kill and reconfigure. */
export const startOwnOffloadingClusters = (
  localNamespaces: readonly string[],
): Promise<OffloadingClusters<TestApiServer>> => openOffloadingClusters(localNamespaces, startOwnKindsServer);

async function openOffloadingClusters<S extends ApiServer>(
  localNamespaces: readonly string[],
  start: () => Promise<S>,
): Promise<OffloadingClusters<S>> {
  const [consumer, provider] = await Promise.all([start(), start()]);
  const stop = new AbortController();
  const open = async ({ kubeconfig }: ApiServer): Promise<Cluster> =>
    openCluster(await connectKubeconfig(kubeconfig), deps, stop.signal);
  const clusters = { consumer: await open(consumer), provider: await open(provider) };
  await clusters.consumer.api.create(namespaces, {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: tenantNamespace },
  });
  // There is no link: the networks of both are one.
  await clusters.consumer.api.create(peeringPolicies, {
    apiVersion: 'isthmus.dev/v1alpha1',
    kind: 'PeeringPolicy',
    metadata: { name: 'one-network' },
    spec: { asConsumer: { peers: ['*'] }, network: { remoteCidrs: ['10.9.0.0/16'] } },
  } as never);
  await Promise.all(localNamespaces.map((name) => ready(clusters.consumer.api, name)));
  await Promise.all(localNamespaces.map((name) => ready(clusters.provider.api, `${name}-cons`)));
  const worker = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'worker' } } as Node;
  await clusters.provider.api.create(nodes, worker);
  const fixture: OffloadingClusters<S> = {
    ...clusters,
    servers: { consumer, provider },
    endsPods: true,
    async stop() {
      stop.abort();
      await Promise.all([consumer.stop(), provider.stop()]);
    },
  };
  playProvider(fixture, stop.signal);
  return fixture;
}

function playProvider(fixture: OffloadingClusters, signal: AbortSignal): void {
  const { api, caches } = fixture.provider;
  const shadows = caches.scoped(shadowPods, {}, signal);
  const remote = caches.scoped(pods, {}, signal);
  const act = (what: Promise<unknown>): void => void what.catch(() => undefined);
  shadows.subscribe(({ before, after }) => {
    // The garbage collector does the same, but after an outage of the API server it takes its time.
    if (before && !after)
      act(api.delete(pods, { namespace: before.metadata.namespace ?? '', name: before.metadata.name }));
    if (after && after.metadata.deletionTimestamp === undefined) act(api.create(pods, podOf(after)));
  });
  remote.subscribe(({ before, after }) => {
    if (after?.metadata.deletionTimestamp !== undefined && fixture.endsPods) act(endPod(fixture, after));
    if (before && !after) {
      const shadow = shadows.get({ namespace: before.metadata.namespace ?? '', name: before.metadata.name });
      if (shadow && shadow.metadata.deletionTimestamp === undefined) act(api.create(pods, podOf(shadow)));
    }
  });
}

const podOf = (shadow: ShadowPod): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: {
    name: shadow.metadata.name,
    namespace: shadow.metadata.namespace ?? '',
    labels: { ...shadow.metadata.labels, 'liqo.io/managed-by': 'shadowpod' },
    annotations: shadow.metadata.annotations ?? {},
    ownerReferences: [
      {
        apiVersion: 'offloading.liqo.io/v1beta1',
        kind: 'ShadowPod',
        name: shadow.metadata.name,
        uid: shadow.metadata.uid ?? '',
        controller: true,
      },
    ],
  },
  spec: { ...shadow.spec.pod, nodeName: 'worker' },
});

/** Ends a pod as a kubelet does after its containers have stopped. */
const endPod = ({ provider }: OffloadingClusters, { metadata }: Pod): Promise<boolean> =>
  provider.api.delete(pods, { namespace: metadata.namespace ?? '', name: metadata.name }, { gracePeriodSeconds: 0 });

export async function createVirtualNode(
  fixture: OffloadingClusters,
  name: string,
  spec: Partial<VirtualNodeSpec> = {},
): Promise<void> {
  const { api } = fixture.consumer;
  const secret = `kubeconfig-resourceslice-${name}`;
  await api.apply(
    secrets,
    {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: secret, namespace: tenantNamespace },
      data: { kubeconfig: Buffer.from(fixture.servers.provider.kubeconfig).toString('base64') },
    },
    { fieldManager: 'test' },
  );
  await api.create(virtualNodes, {
    apiVersion: 'offloading.liqo.io/v1beta1',
    kind: 'VirtualNode',
    metadata: { name, namespace: tenantNamespace },
    spec: {
      clusterID: 'prov',
      kubeconfigSecretRef: { name: secret },
      resourceQuota: { hard: { cpu: '4', memory: '8Gi', pods: '110' } },
      ...spec,
    },
  });
}

/** Sets which namespaces are offloaded, as NamespaceOffloading and the provider would. */
export async function mapNamespaces(fixture: OffloadingClusters, names: readonly string[]): Promise<void> {
  const { api } = fixture.consumer;
  const ref = { namespace: tenantNamespace, name: 'prov' };
  await eventually('the NamespaceMap', () => api.get(namespaceMaps, ref));
  const desiredMapping = Object.fromEntries(names.map((name) => [name, `${name}-cons`]));
  const currentMapping = Object.fromEntries(
    names.map((name) => [name, { remoteNamespace: `${name}-cons`, phase: 'Accepted' as const }]),
  );
  const replaced = (path: string, value: unknown) => [{ op: 'add', path, value }];
  await api.jsonPatch(namespaceMaps, ref, replaced('/spec', { desiredMapping }));
  await api.jsonPatch(namespaceMaps, ref, replaced('/status', { currentMapping }), { subresource: 'status' });
}

export const boundPod = (namespace: string, name: string, nodeName: string, spec: Record<string, unknown> = {}): Pod =>
  ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { namespace, name, labels: { app: name } },
    spec: {
      nodeName,
      containers: [{ name: 'app', image: 'demo:1' }],
      tolerations: [{ key: 'virtual-node.liqo.io/not-allowed', operator: 'Exists', effect: 'NoExecute' }],
      ...spec,
    },
  }) as Pod;

/** Writes what a kubelet would about a running pod. */
export async function runPod(
  fixture: OffloadingClusters,
  namespace: string,
  name: string,
  restartCount = 0,
): Promise<Pod> {
  const pod = await eventually(`pod ${namespace}/${name} at the provider`, () =>
    fixture.provider.api.get(pods, { namespace, name }),
  );
  const at = new Date().toISOString().replace(/\.\d+Z$/, 'Z');
  const status = {
    phase: 'Running',
    podIP: '10.9.9.9',
    podIPs: [{ ip: '10.9.9.9' }],
    hostIP: '198.18.2.2',
    hostIPs: [{ ip: '198.18.2.2' }],
    startTime: at,
    conditions: ['PodScheduled', 'Initialized', 'ContainersReady', 'Ready'].map((type) => ({
      type,
      status: 'True',
      lastTransitionTime: at,
    })),
    containerStatuses: [
      {
        name: 'app',
        ready: true,
        started: true,
        restartCount,
        image: 'demo:1',
        imageID: 'sha256:1',
        containerID: `containerd://${pod.metadata.uid}`,
        state: { running: { startedAt: at } },
      },
    ],
  };
  return fixture.provider.api.mergePatch(pods, { namespace, name }, { status }, { subresource: 'status' });
}
