/** Two clusters (API server and controller-manager, a node each that runs nothing) with the peering controllers of both in this process. */
import { createGrantedSliceControllers } from '#agent/offloading/offloading.ts';
import type { ConnectPeer, PeeringConfig } from '#agent/peering/model/deps.ts';
import { createPeeringControllers } from '#agent/peering/peering.ts';
import { systemIds } from '#agent/runtime/ids.ts';
import { createKubeApi } from '#kube/http/client.ts';
import { connectKubeconfig } from '#kube/http/kubeconfig.ts';
import type { Cluster, KubeApi } from '#kube/model/types.ts';
import { openCluster } from '#kube/open-cluster.ts';
import { clusterRoles, namespaces } from '#shared/domain/core-kinds.ts';
import { systemNamespace } from '#shared/domain/liqo-keys.ts';
import { remoteRoles } from '#shared/domain/remote-roles.ts';
import type { Clock } from '#shared/ports/clock.ts';
import type { Log } from '#shared/ports/log.ts';
import { connectAsAgent, giveAgentRights } from '#test/harness/agent-account.ts';
import { leaseApiServer } from '#test/harness/api-server-pool/lease.ts';
import type { ApiServer, TestApiServer } from '#test/harness/kube-apiserver.ts';
import { testLog } from '#test/harness/logs.ts';
import { startOwnKindsServer } from '#test/harness/own-kinds.ts';
import { startSteadyNode } from '#test/harness/steady-node.ts';
import { ShiftedClock } from './shifted-clock.ts';

export interface TestCluster<S extends ApiServer = ApiServer> {
  readonly id: string;
  readonly server: S;
  /** As an administrator. */
  readonly api: KubeApi;
  startAgent(): Promise<void>;
  /** As a crash would: operations in progress stay half done. */
  stopAgent(): Promise<void>;
  stop(): Promise<void>;
}

export interface Pair<S extends ApiServer = ApiServer> {
  readonly consumer: TestCluster<S>;
  readonly provider: TestCluster<S>;
  readonly clock: ShiftedClock;
  stop(): Promise<void>;
}

const certificateLifetimeSeconds = 3_600;

/** What differs from one pair to another. */
export interface PairSettings {
  /** Of the agents; default: certificates. */
  readonly credentials?: NonNullable<PeeringConfig['credentials']>;
  /** Default: silent, or the console with TEST_LOG. */
  readonly log?: Log;
}

/** Of a kube-controller-manager that has no key to sign with: as on EKS, requests are approved and get no answer. */
const noSigner: readonly string[] = ['--cluster-signing-cert-file=', '--cluster-signing-key-file='];

/** What else runs in each cluster, started with the peering controllers and ended with them. */
export type More = (deps: {
  readonly cluster: Cluster;
  readonly clusterId: string;
  readonly config: PeeringConfig;
  readonly clock: Clock;
  readonly log: Log;
}) => Promise<readonly { run(signal: AbortSignal): Promise<void> }[]>;
const nothingMore: More = async () => [];

async function startCluster<S extends ApiServer>(
  server: S,
  id: string,
  clock: ShiftedClock,
  arch: string,
  more: More,
  connectPeer: ConnectPeer | undefined,
  { credentials = 'certificate', log = testLog }: PairSettings,
): Promise<TestCluster<S>> {
  const api = createKubeApi(await connectKubeconfig(server.kubeconfig), { clock, log });
  await api.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: systemNamespace } });
  await Promise.all(remoteRoles().map((role) => api.create(clusterRoles, role)));
  await giveAgentRights(api);
  const labels = { 'kubernetes.io/arch': arch, 'kubernetes.io/os': 'linux' };
  const noMoreNode = new AbortController();
  await startSteadyNode(api, `${id}-1`, labels, noMoreNode.signal);
  let running: { readonly abort: AbortController; readonly done: Promise<unknown> } | undefined;
  return {
    id,
    server,
    api,
    async startAgent() {
      const abort = new AbortController();
      const connection = await connectAsAgent(server);
      const cluster = openCluster(connection, { clock, log }, abort.signal);
      const own = { apiServerUrl: server.url, apiServerCa: server.ca, systemNamespace, certificateLifetimeSeconds };
      const config = { ...own, credentials };
      const deps = { cluster, clusterId: id, config, clock, log, ids: systemIds, ...(connectPeer && { connectPeer }) };
      const controllers = [...createPeeringControllers(deps), ...createGrantedSliceControllers(deps)];
      const others = await more({ cluster, clusterId: id, config, clock, log });
      running = { abort, done: Promise.all([...controllers, ...others].map((one) => one.run(abort.signal))) };
    },
    async stopAgent() {
      running?.abort.abort(new Error('the test stops the agent'));
      await running?.done;
      running = undefined;
    },
    async stop() {
      noMoreNode.abort();
      await server.stop();
    },
  };
}

export const startPair = (more: More = nothingMore, connectPeer?: ConnectPeer): Promise<Pair> =>
  openPair(leaseApiServer, more, connectPeer);

/** With API servers of which none signs a certificate. */
export const startUnsignedPair = (
  more: More = nothingMore,
  settings: PairSettings = {},
): Promise<Pair<TestApiServer>> =>
  openPair(
    async () => {
      const server = await startOwnKindsServer();
      await server.restartControllerManager(noSigner);
      return server;
    },
    more,
    undefined,
    settings,
  );

/** With API servers that the test may kill and reconfigure. */
export const startOwnPair = (more: More = nothingMore): Promise<Pair<TestApiServer>> =>
  openPair(startOwnKindsServer, more, undefined);

async function openPair<S extends ApiServer>(
  start: () => Promise<S>,
  more: More,
  connectPeer: ConnectPeer | undefined,
  settings: PairSettings = {},
): Promise<Pair<S>> {
  const clock = new ShiftedClock();
  const open = async (id: string, arch: string) =>
    startCluster(await start(), id, clock, arch, more, connectPeer, settings);
  const [consumer, provider] = await Promise.all([open('rome', 'amd64'), open('milan', 'arm64')]);
  await Promise.all([consumer.startAgent(), provider.startAgent()]);
  return {
    consumer,
    provider,
    clock,
    async stop() {
      await Promise.all([consumer.stopAgent(), provider.stopAgent()]);
      await Promise.all([consumer.stop(), provider.stop()]);
    },
  };
}
