/** One installed cluster on a real API server: the agent's controllers in this process, and a player for kubelets and node processes. */
import { setTimeout as timer } from 'node:timers/promises';
import { createNetworkControllers } from '#agent/network/network.ts';
import { createGrantedSliceControllers } from '#agent/offloading/offloading.ts';
import type { PeeringConfig } from '#agent/peering/model/deps.ts';
import { createPeeringControllers } from '#agent/peering/peering.ts';
import { systemIds } from '#agent/runtime/ids.ts';
import { capturedIo } from '#cli/captured-io.ts';
import { openCluster as openForCli } from '#cli/cluster/open.ts';
import { applyManifests } from '#cli/install/apply.ts';
import { agentManifests } from '#cli/install/manifests.ts';
import { createKubeApi } from '#kube/http/client.ts';
import { connectKubeconfig } from '#kube/http/kubeconfig.ts';
import type { KubeApi } from '#kube/model/types.ts';
import { openCluster } from '#kube/open-cluster.ts';
import { deployments, namespaces, nodes, pods, secrets } from '#shared/domain/core-kinds.ts';
import { type Node, type Pod, refOf } from '#shared/domain/kube-object.ts';
import { systemNamespace } from '#shared/domain/liqo-keys.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import type { Connection } from '#shared/schema/liqo/connection.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import { leaseApiServer } from '#test/harness/api-server-pool/lease.ts';
import { eventually } from '#test/harness/eventually.ts';
import type { ApiServer, TestApiServer } from '#test/harness/kube-apiserver.ts';
import { testLog as log } from '#test/harness/logs.ts';
import { startOwnKindsServer } from '#test/harness/own-kinds.ts';
import { beat, plenty } from '#test/harness/steady-node.ts';
import type { More } from '../peering/clusters.ts';

export interface DeclaredCluster<S extends ApiServer = ApiServer> {
  readonly id: string;
  readonly server: S;
  /** As an administrator. */
  readonly api: KubeApi;
  readonly nodeAddress: string;
  startAgent(): void;
  stopAgent(): Promise<void>;
  stop(): Promise<void>;
}

export interface ClusterPlan {
  readonly id: string;
  readonly podCidr: string;
  readonly externalCidr: string;
  readonly nodeAddress: string;
  /** What else runs of the agent, besides peering and network. */
  readonly more?: More;
  /** Default `certificate`. */
  readonly credentials?: PeeringConfig['credentials'];
}

export const startCluster = async (plan: ClusterPlan): Promise<DeclaredCluster> =>
  installOn(await leaseApiServer(), plan);

/** With an API server that the test may kill. */
export const startOwnCluster = async (plan: ClusterPlan): Promise<DeclaredCluster<TestApiServer>> =>
  installOn(await startOwnKindsServer(), plan);

async function installOn<S extends ApiServer>(server: S, plan: ClusterPlan): Promise<DeclaredCluster<S>> {
  const { id, podCidr, externalCidr, nodeAddress } = plan;
  const connection = await connectKubeconfig(server.kubeconfig);
  const api = createKubeApi(connection, { clock: systemClock, log });
  const io = capturedIo({});
  const kube = await openForCli({ kubeconfig: server.kubeconfigPath }, io);
  const ranges = {
    podCidrs: [podCidr],
    serviceCidr: '10.96.0.0/16',
    externalCidr,
    internalCidr: '10.80.0.0/16',
    reservedSubnets: [],
    fixed: { external: false, internal: false },
  };
  const manifests = agentManifests({
    clusterId: id,
    image: 'isthmus.dev/agent:1.2.0',
    apiServerUrl: server.url,
    replicas: 1,
    network: { ranges },
  });
  await applyManifests(io, kube, manifests, { update() {}, done() {}, fail() {} });
  await api.create(nodes, nodeOf(id, nodeAddress));
  let agent: { readonly stop: AbortController; readonly ended: Promise<unknown> } | undefined;
  const stopPlaying = new AbortController();
  const playing = play(api, `${id}-1`, stopPlaying.signal);

  const cluster: DeclaredCluster<S> = {
    id,
    server,
    api,
    nodeAddress,
    startAgent() {
      const stop = new AbortController();
      const run = async (): Promise<void> => {
        const own = openCluster(await connectKubeconfig(server.kubeconfig), { clock: systemClock, log }, stop.signal);
        const deps = { cluster: own, clusterId: id, clock: systemClock, log, ids: systemIds, systemNamespace };
        const config = {
          apiServerUrl: server.url,
          apiServerCa: server.ca,
          systemNamespace,
          credentials: plan.credentials ?? 'certificate',
        } as const;
        const peering = { ...deps, config };
        const all = [
          ...createPeeringControllers(peering),
          ...createGrantedSliceControllers(peering),
          ...createNetworkControllers(deps),
          ...((await plan.more?.({ ...deps, config })) ?? []),
        ];
        await Promise.all(all.map((controller) => controller.run(stop.signal)));
      };
      agent = { stop, ended: run() };
    },
    async stopAgent() {
      agent?.stop.abort(new Error('the test stops the agent'));
      await agent?.ended;
      agent = undefined;
    },
    async stop() {
      stopPlaying.abort();
      await playing;
      await cluster.stopAgent();
      connection.close();
      await server.stop();
    },
  };
  cluster.startAgent();
  await eventually('the ranges of the cluster', async () => {
    const granted = await api.list(networkKinds.networks, { namespace: systemNamespace });
    return granted.length > 0 && granted.every(({ status }) => (status?.cidr ?? '') !== '');
  });
  return cluster;
}

const nodeOf = (id: string, address: string): Node => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name: `${id}-1`, labels: { 'kubernetes.io/os': 'linux', 'kubernetes.io/arch': 'amd64' } },
  status: {
    allocatable: { ...plenty },
    conditions: [{ type: 'Ready', status: 'True' }],
    addresses: [{ type: 'InternalIP', address }],
  },
});

const everyMs = 200;
const beatRounds = 20;

/** Runs the pods of gateways; that the two ends of a link hear each other is played by `playLink`. */
async function play(api: KubeApi, node: string, signal: AbortSignal): Promise<void> {
  for (let round = 0; !signal.aborted; round++) {
    if (round % beatRounds === 0) await beat(api, node).catch(() => undefined);
    await runGateways(api, node).catch(() => undefined);
    await timer(everyMs, undefined, { signal }).catch(() => undefined);
  }
}

async function runGateways(api: KubeApi, node: string): Promise<void> {
  const wanted = await api.list(deployments, { labelSelector: 'networking.liqo.io/component=gateway' });
  const existing = await api.list(pods, { labelSelector: 'networking.liqo.io/component=gateway' });
  for (const { metadata } of existing.filter(isEnding))
    await api.delete(pods, refOf({ metadata } as Pod), { gracePeriodSeconds: 0 });
  for (const { metadata, spec, status } of wanted) {
    const { namespace = '', name } = metadata;
    // The Deployment's own pods are never scheduled here: the first of them is declared to run.
    const pod = existing.find((one) => one.metadata.namespace === namespace && !isEnding(one));
    if (pod !== undefined && pod.status?.phase !== 'Running') await runPod(api, pod, node);
    if ((status?.readyReplicas ?? 0) === 0 && pod?.status?.phase === 'Running') {
      const replicas = spec?.replicas ?? 1;
      const ready = { replicas, readyReplicas: replicas, availableReplicas: replicas, updatedReplicas: replicas };
      await api.mergePatch(deployments, { namespace, name }, { status: ready }, { subresource: 'status' });
    }
  }
}

const isEnding = ({ metadata }: Pod): boolean => metadata.deletionTimestamp !== undefined;

async function runPod(api: KubeApi, { metadata }: Pod, node: string): Promise<void> {
  const ref = { namespace: metadata.namespace ?? '', name: metadata.name };
  const target = { apiVersion: 'v1', kind: 'Binding', metadata: ref, target: { kind: 'Node', name: node } };
  await api.post(pods, ref, 'binding', target);
  await api.mergePatch(pods, ref, { metadata: { labels: { 'networking.liqo.io/active': 'true' } } });
  const conditions = [{ type: 'Ready', status: 'True' }];
  const ip = '10.200.1.5';
  const status = { phase: 'Running', podIP: ip, podIPs: [{ ip }], conditions };
  await api.mergePatch(pods, ref, { status }, { subresource: 'status' });
}

interface End {
  /** Base64. */
  readonly own: string | undefined;
  readonly expected: string | undefined;
  readonly connections: readonly Connection[];
}

async function endOf({ api }: DeclaredCluster, peer: string): Promise<End> {
  const labelSelector = `liqo.io/remote-cluster-id=${peer}`;
  const [connections, keys, servers, clients] = await Promise.all([
    api.list(networkKinds.connections, { labelSelector }),
    api.list(networkKinds.publicKeys, { labelSelector }),
    api.list(networkKinds.gatewayServers, { labelSelector }),
    api.list(networkKinds.gatewayClients, { labelSelector }),
  ]);
  const [gateway] = [...servers, ...clients];
  const { namespace = '', name = '' } = gateway?.status?.secretRef ?? {};
  const secret = name === '' ? undefined : await api.get(secrets, { namespace, name });
  return { own: secret?.data?.publicKey, expected: keys[0]?.spec.publicKey, connections };
}

/** As WireGuard would have it: connected while each end expects the key of the other. */
export async function playLink(a: DeclaredCluster, b: DeclaredCluster, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await once(a, b).catch(() => undefined);
    await timer(everyMs, undefined, { signal }).catch(() => undefined);
  }
}

async function once(a: DeclaredCluster, b: DeclaredCluster): Promise<void> {
  const [left, right] = await Promise.all([endOf(a, b.id), endOf(b, a.id)]);
  const isUp =
    left.own !== undefined &&
    right.own !== undefined &&
    left.own === right.expected &&
    right.own === left.expected &&
    left.connections.length === 1 &&
    right.connections.length === 1;
  const value = isUp ? 'Connected' : 'Connecting';
  for (const [{ api }, { connections }] of [
    [a, left],
    [b, right],
  ] as const) {
    for (const { metadata, status } of connections) {
      if (status?.value === value) continue;
      const ref = { namespace: metadata.namespace ?? '', name: metadata.name };
      await api.mergePatch(networkKinds.connections, ref, { status: { value } }, { subresource: 'status' });
    }
  }
}

export const tenantNamespacesOf = async ({ api }: DeclaredCluster): Promise<string[]> =>
  (await api.list(namespaces, { labelSelector: 'liqo.io/tenant-namespace' })).map(({ metadata }) => metadata.name);
