/** The offloading world with one virtual node `vn1` of the consumer, whose way to the provider's API server can be cut. */
import { createConnectCluster } from '#agent/runtime/connect-cluster.ts';
import { nodes, pods } from '#shared/domain/core-kinds.ts';
import type { Pod } from '#shared/domain/kube-object.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { eventually } from './eventually.ts';
import type { ApiServer } from './kube-apiserver.ts';
import { boundPod, createVirtualNode, mapNamespaces, type OffloadingClusters, runPod } from './offloading-clusters.ts';
import { startConsumer } from './reflection-clusters.ts';
import { startTcpProxy } from './tcp-proxy.ts';

export const conditionOf = (of: Pod | undefined, type: string): string | undefined =>
  of?.status?.conditions?.find((one) => one.type === type)?.status;

export interface CutOffClusters<S extends ApiServer = ApiServer> {
  readonly world: OffloadingClusters<S>;
  /** In the offloaded namespace `demo`. */
  local(name: string): Promise<Pod | undefined>;
  remote(name: string): Promise<Pod | undefined>;
  isReady(): Promise<boolean>;
  /** As if every packet to the provider were dropped. */
  cutOff(): void;
  /** What hung until now ends; a router would say so, too, or TCP would give up. */
  heal(): void;
  /** `tolerates`: seconds for which the pod stays on a node that is lost. */
  runningPod(name: string, tolerates: number): Promise<void>;
  stop(): Promise<void>;
}

/** Takes over `world`, which has namespace `demo`: it ends with the result. */
export async function openCutOffClusters<S extends ApiServer>(
  clusters: OffloadingClusters<S>,
): Promise<CutOffClusters<S>> {
  const { port } = new URL(clusters.servers.provider.url);
  const line = await startTcpProxy(Number(port));
  const connect = createConnectCluster({ clock: systemClock, log: silentLog });
  const agent = startConsumer(clusters, {
    kubeletPortBase: 12_650,
    connectPeer: (kubeconfig, signal) => connect(kubeconfig.replaceAll(`:${port}`, `:${line.port}`), signal),
  });
  const { api } = clusters.consumer;
  const cutOffClusters: CutOffClusters<S> = {
    world: clusters,
    local: (name) => api.get(pods, { namespace: 'demo', name }),
    remote: (name) => clusters.provider.api.get(pods, { namespace: 'demo-cons', name }),
    async isReady() {
      const node = await api.get(nodes, { name: 'vn1' });
      return node?.status?.conditions?.find(({ type }) => type === 'Ready')?.status === 'True';
    },
    cutOff() {
      line.newConnections('stall');
      line.stall();
    },
    heal() {
      line.newConnections('pass');
      line.cut();
    },
    async runningPod(name, tolerates) {
      const lost = (key: string) => ({
        key: `node.kubernetes.io/${key}`,
        operator: 'Exists',
        effect: 'NoExecute',
        tolerationSeconds: tolerates,
      });
      const own = { key: 'virtual-node.liqo.io/not-allowed', operator: 'Exists', effect: 'NoExecute' };
      const tolerations = [own, lost('unreachable'), lost('not-ready')];
      await api.create(pods, boundPod('demo', name, 'vn1', { tolerations, terminationGracePeriodSeconds: 1 }));
      await runPod(clusters, 'demo-cons', name);
      const isReady = async () => conditionOf(await cutOffClusters.local(name), 'Ready') === 'True';
      await eventually(`${name} is ready`, isReady);
    },
    async stop() {
      line.cut();
      await agent.stop();
      await line.close();
      await clusters.stop();
    },
  };
  await createVirtualNode(clusters, 'vn1', { resourceQuota: { hard: { cpu: '40', memory: '80Gi', pods: '1100' } } });
  await mapNamespaces(clusters, ['demo']);
  await eventually('the Node', cutOffClusters.isReady);
  return cutOffClusters;
}
