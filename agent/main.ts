/**
 * Composition root of the agent: reads the configuration, opens the cluster, serves admission on every replica and controls on one. As `all`
 * it does the work of its node, too, which otherwise is a process of its own (network/node/main.ts): for clusters of one node.
 */
import { createPrivateKey } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { systemIds } from '#agent/runtime/ids.ts';
import { createLog } from '#agent/runtime/log.ts';
import { type ClusterConnection, connectInCluster } from '#kube/http/connection.ts';
import { connectKubeconfig } from '#kube/http/kubeconfig.ts';
import type { Cluster } from '#kube/model/types.ts';
import { openCluster } from '#kube/open-cluster.ts';
import { type LeaseOptions, runAsLeader } from '#kube/run/leader-election.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { controllerMetrics } from '#shared/metrics/definitions.ts';
import { Registry } from '#shared/metrics/registry.ts';
import type { Log } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { startAdmission } from './admission/admission.ts';
import { callersOfNode } from './admission/callers.ts';
import { createApiServerProxyController } from './api-proxy/controller.ts';
import { createBrokerController } from './broker/broker.ts';
import { type AgentConfig, loadAgentConfig } from './config.ts';
import { countPeers } from './metrics/peers.ts';
import { countClient, countControllers, countProcess } from './metrics/process.ts';
import { serveMetrics } from './metrics/server.ts';
import { createNetworkControllers } from './network/network.ts';
import { createServedNodeController } from './network/overlay/served-node/controller.ts';
import { createVirtualNodeController } from './offloading/consumer/virtual-node/controller.ts';
import { NodeMetrics } from './offloading/consumer/virtual-node/node-metrics.ts';
import { createGrantedSliceControllers, createOffloadingControllers } from './offloading/offloading.ts';
import { ensureClusterKeys } from './peering/keys/ensure-keys.ts';
import { tokenOpener } from './peering/keys/token-opener.ts';
import { createPeeringControllers } from './peering/peering.ts';
import { proxyTokens } from './pki/proxy-token.ts';
import { createConnectCluster } from './runtime/connect-cluster.ts';
import { startHealth } from './runtime/health.ts';
import { collectWhenQuiet, processCollection } from './runtime/quiet-collection.ts';
import { ReachableProviders } from './storage/providers/reachable-providers.ts';
import { createStorageControllers } from './storage/storage.ts';
import { createHooks } from './webhooks.ts';

const version = process.env.ISTHMUS_VERSION ?? '0.0.0-dev';
const roles = ['controller', 'all'];
const leaseName = 'isthmus-agent';
const lastWordMs = 5_000;

async function main(): Promise<void> {
  const role = process.argv[2] ?? 'controller';
  if (role === 'version') return console.log(version);
  if (!roles.includes(role)) {
    throw new AppError(
      'invalid_input',
      `the agent has no role ${JSON.stringify(role)}, accepted: ${roles.join(', ')}, version`,
    );
  }
  const config = loadAgentConfig(process.env);
  const log = createLog({ level: config.logLevel, fields: { cluster: config.clusterId, pod: config.podName } });
  const stop = new AbortController();
  for (const signal of ['SIGTERM', 'SIGINT'] as const)
    process.once(signal, () => stop.abort(new Error(`received ${signal}`)));
  const collection = processCollection(systemClock);
  if (collection !== undefined) void collectWhenQuiet(collection, stop.signal);
  if (role === 'all') await runAll(config, log, stop.signal);
  else await runController(config, log, stop.signal);
}

/** In the network of the node: ports are free only once the agent before this one has ended. */
async function runAll(config: AgentConfig, log: Log, signal: AbortSignal): Promise<void> {
  const [{ loadNodeAgentEnvironment }, { acquireHostMutex }, { runNodeProcess }] = await Promise.all([
    import('./network/node/config.ts'),
    import('./runtime/host-mutex.ts'),
    import('./network/node/node-process.ts'),
  ]);
  const env = loadNodeAgentEnvironment(process.env);
  const clock = systemClock;
  await acquireHostMutex(leaseName, { clock, log }, signal);
  await runController(config, log, signal, {
    name: env.node,
    serve: (cluster, registry) =>
      runNodeProcess({ cluster, clock, log: log.with({ part: 'node' }), env, registry }, signal),
  });
}

/** The node that this process works for. */
interface ServedNode {
  readonly name: string;
  /** Returns when the process has been asked to end and everything is in order. */
  readonly serve: (cluster: Cluster, registry: Registry) => Promise<void>;
}

async function runController(config: AgentConfig, log: Log, signal: AbortSignal, node?: ServedNode): Promise<void> {
  const clock = systemClock;
  const connection = await connect(config);
  const registry = new Registry();
  countProcess(registry, { version, role: node === undefined ? 'controller' : 'all' });
  const clients = { clock, log, metrics: countClient(registry, 'local') };
  const cluster = openCluster(connection, clients, signal, { reportingInstance: config.podName });
  const { hostname, port } = connection.server;
  const upstream = { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port) || 443 };
  const health = await startHealth(
    {
      port: config.healthPort,
      ...(config.healthHost !== undefined && { host: config.healthHost }),
    },
    signal,
  );
  let leads = false;
  registry.collect(controllerMetrics.leading, () => [[{}, leads ? 1 : 0]]);
  if (config.metrics !== undefined)
    await serveMetrics(config.metrics, { registry, api: cluster.api, clock, log }, signal);
  const controllers = countControllers(registry);
  const admission = await startAdmission({
    cluster,
    hooks: createHooks({ cluster, clusterId: config.clusterId, clock, systemNamespace: config.systemNamespace }),
    clock,
    log,
    metrics: controllers,
    onVerdict: (path, verdict) => registry.add(controllerMetrics.verdicts, { path, verdict }),
    systemNamespace: config.systemNamespace,
    port: config.webhookPort,
    ...(config.listenHost !== undefined && { host: config.listenHost }),
    ...(node !== undefined && { mayCall: callersOfNode(cluster.caches) }),
  });
  const leading = runAsLeader(
    { api: cluster.api, caches: cluster.caches, clock, log },
    { namespace: config.systemNamespace, name: leaseName, ...candidacy(config.podName, node) },
    signal,
    (led) => {
      leads = true;
      return lead(
        {
          config,
          cluster,
          log,
          apiServerCa: config.apiServerCa ?? connection.ca ?? '',
          upstream,
          apiServer: connection,
          registry,
          servedNode: node?.name,
        },
        led,
      ).finally(() => {
        leads = false;
      });
    },
  );
  const serving = node?.serve(cluster, registry);
  // Ready means registered: those that wait for the agent (`isthmus install`, `helm --wait`) find the hooks in force.
  void admission.registered.then(() => {
    health.ready();
    log.info('agent started', { version, node: process.version });
  });
  await Promise.race([Promise.all([admission.run(signal), leading, serving]), aborted(signal)]);
  await serving;
  // Give running passes and the lease a moment to end cleanly.
  await Promise.race([leading.catch(() => undefined), clock.sleep(lastWordMs)]);
}

/** A process that works for its node holds the host mutex there (`runAll`), so an earlier leader from the same node has ended. */
function candidacy(pod: string, node: ServedNode | undefined): Pick<LeaseOptions, 'identity' | 'hasEnded'> {
  if (node === undefined) return { identity: pod };
  const ofNode = `@${node.name}`;
  return { identity: `${pod}${ofNode}`, hasEnded: (holder) => holder.endsWith(ofNode) };
}

interface Lead {
  readonly config: AgentConfig;
  readonly cluster: Cluster;
  readonly log: Log;
  readonly apiServerCa: string;
  readonly registry: Registry;
  readonly servedNode: string | undefined;
  /** The API server as this process reaches it. */
  readonly upstream: { readonly host: string; readonly port: number };
  readonly apiServer: Pick<ClusterConnection, 'server' | 'ca'>;
}

/** Everything of which there must be one: controllers, virtual nodes, the connection to the broker. */
async function lead(
  { config, cluster, log, apiServerCa, upstream, apiServer, registry, servedNode }: Lead,
  signal: AbortSignal,
): Promise<void> {
  const { clusterId, systemNamespace } = config;
  const common = { cluster, clusterId, clock: systemClock, log, ids: systemIds };
  const keys = await ensureClusterKeys(cluster.api, systemNamespace, signal);
  const privateKey = createPrivateKey(keys.privateKey);
  const newId = () => systemIds.next('jti');
  // A pair that Liqo left behind may be of another kind; providers take tokens by Ed25519 only.
  const signsTokens = privateKey.asymmetricKeyType === 'ed25519';
  const proxyToken = proxyTokens({ consumer: clusterId, privateKey, nowMs: systemClock.now, newId });
  const metrics = countControllers(registry);
  const openToken = tokenOpener(cluster.api, systemNamespace);
  const peers = {
    clock: systemClock,
    log,
    openToken,
    metrics: countClient(registry, 'peer'),
    ...(signsTokens ? { proxyToken } : {}),
  };
  const peering = {
    ...common,
    connectPeer: createConnectCluster(peers),
    config: {
      apiServerUrl: config.apiServerUrl,
      apiServerCa,
      systemNamespace,
      ...(config.gatewayRole !== undefined && { gatewayRole: config.gatewayRole }),
      certificateLifetimeSeconds: config.certificateLifetimeSeconds,
      credentials: config.credentials,
      clusterLabels: config.clusterLabels,
    },
  };
  const providers = config.storage ? new ReachableProviders() : undefined;
  const controllers = [
    ...createPeeringControllers(peering),
    ...createGrantedSliceControllers(peering),
    ...createOffloadingControllers({
      ...common,
      nodeFailureMs: config.nodeFailureSeconds * 1_000,
    }),
    ...createNetworkControllers({ ...common, systemNamespace }),
    createServedNodeController({ cluster, clock: systemClock, log, servedNode }),
    createApiServerProxyController({
      ...common,
      systemNamespace,
      apiServerUrl: config.apiServerUrl,
      upstream,
      apiServer,
      podIp: config.podIp,
      ...(config.nodeName !== undefined && { nodeName: config.nodeName }),
      ...(config.listenHost !== undefined && { host: config.listenHost }),
    }),
    createVirtualNodeController({
      ...common,
      nodeMetrics: new NodeMetrics(registry, systemClock),
      podIp: config.podIp,
      kubeletPortBase: config.kubeletPortBase,
      connectPeer: createConnectCluster(peers),
      systemNamespace,
      ...(providers && { providers }),
    }),
    ...(providers ? createStorageControllers({ ...common, providers, systemNamespace, podName: config.podName }) : []),
  ];
  const brokerController = createBrokerController({
    ...common,
    metrics,
    privateKey,
    ...(keys.succession === undefined ? {} : { succession: keys.succession }),
    config: { systemNamespace, agentVersion: version, apiServerUrl: config.apiServerUrl, apiServerCa },
  });
  for (const controller of controllers) controller.measure(metrics);
  countPeers(registry, cluster.caches, () => brokerController.broker(), signal);
  await Promise.all([...controllers.map((controller) => controller.run(signal)), brokerController.run(signal)]);
}

async function connect(config: AgentConfig): Promise<ClusterConnection> {
  if (config.kubeconfigPath) return connectKubeconfig(readFileSync(config.kubeconfigPath, 'utf8'));
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = process.env;
  return connectInCluster({ ...(host ? { host } : {}), ...(port ? { port } : {}), clock: systemClock });
}

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });

main().then(
  () => process.exit(0),
  (error: unknown) => {
    createLog().error('the agent ends', error);
    process.exit(1);
  },
);
