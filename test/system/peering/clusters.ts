/** Two clusters (API server and controller-manager, no nodes) with the peering controllers of both in this process. */
import { createGrantedSliceControllers } from '#agent/offloading/offloading.ts';
import type { ConnectPeer, PeeringConfig } from '#agent/peering/model/deps.ts';
import { createPeeringControllers } from '#agent/peering/peering.ts';
import { systemIds } from '#agent/runtime/ids.ts';
import { createKubeApi } from '#kube/http/client.ts';
import { connectKubeconfig } from '#kube/http/kubeconfig.ts';
import type { Cluster, KubeApi } from '#kube/model/types.ts';
import { openCluster } from '#kube/open-cluster.ts';
import { clusterRoles, namespaces, nodes } from '#shared/domain/core-kinds.ts';
import { systemNamespace } from '#shared/domain/liqo-keys.ts';
import { remoteRoles } from '#shared/domain/remote-roles.ts';
import type { Clock } from '#shared/ports/clock.ts';
import { type Log, silentLog } from '#shared/ports/log.ts';
import { startApiServer, type TestApiServer } from '#test/harness/kube-apiserver.ts';
import { serveOwnKinds } from '#test/harness/own-kinds.ts';
import { ShiftedClock } from './shifted-clock.ts';

export interface TestCluster {
  readonly id: string;
  readonly server: TestApiServer;
  /** As an administrator. */
  readonly api: KubeApi;
  startAgent(): Promise<void>;
  /** As a crash would: whatever was under way stays half done. */
  stopAgent(): Promise<void>;
}

export interface Pair {
  readonly consumer: TestCluster;
  readonly provider: TestCluster;
  readonly clock: ShiftedClock;
  stop(): Promise<void>;
}

const certificateLifetimeSeconds = 3_600;

const consoleLog: Log = {
  with: () => consoleLog,
  debug() {},
  info() {},
  warn: (message, fields) => console.warn(message, fields),
  error: (message, error, fields) => console.error(message, error, fields),
};

/** What else runs in each cluster, started with the peering controllers and ended with them. */
export type More = (deps: {
  readonly cluster: Cluster;
  readonly clusterId: string;
  readonly config: PeeringConfig;
  readonly clock: Clock;
  readonly log: Log;
}) => Promise<readonly { run(signal: AbortSignal): Promise<void> }[]>;
const nothingMore: More = async () => [];

async function startCluster(
  id: string,
  clock: ShiftedClock,
  arch: string,
  more: More,
  connectPeer: ConnectPeer | undefined,
): Promise<TestCluster> {
  const server = await startApiServer();
  const log = process.env.TEST_LOG ? consoleLog : silentLog;
  const api = createKubeApi(await connectKubeconfig(server.kubeconfig), { clock, log });
  await serveOwnKinds(server, api);
  await api.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: systemNamespace } });
  await Promise.all(remoteRoles().map((role) => api.create(clusterRoles, role)));
  const labels = { 'kubernetes.io/arch': arch, 'kubernetes.io/os': 'linux' };
  await api.create(nodes, { apiVersion: 'v1', kind: 'Node', metadata: { name: `${id}-1`, labels } });
  let running: { readonly abort: AbortController; readonly done: Promise<unknown> } | undefined;
  return {
    id,
    server,
    api,
    async startAgent() {
      const abort = new AbortController();
      const connection = await connectKubeconfig(server.kubeconfig);
      const cluster = openCluster(connection, { clock, log }, abort.signal);
      const config = { apiServerUrl: server.url, apiServerCa: server.ca, systemNamespace, certificateLifetimeSeconds };
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
  };
}

export async function startPair(more: More = nothingMore, connectPeer?: ConnectPeer): Promise<Pair> {
  const clock = new ShiftedClock();
  const [consumer, provider] = await Promise.all([
    startCluster('rome', clock, 'amd64', more, connectPeer),
    startCluster('milan', clock, 'arm64', more, connectPeer),
  ]);
  await Promise.all([consumer.startAgent(), provider.startAgent()]);
  return {
    consumer,
    provider,
    clock,
    async stop() {
      await Promise.all([consumer.stopAgent(), provider.stopAgent()]);
      await Promise.all([consumer.server.stop(), provider.server.stop()]);
    },
  };
}
