/** Opens the API server of another cluster with a kubeconfig out of a Secret, in which a writer of that Secret can name no program to run. */
import { createCaches } from '#kube/cache/informer-factory.ts';
import { createKubeApi } from '#kube/http/client.ts';
import type { ClusterConnection } from '#kube/http/connection.ts';
import { connectKubeconfig, type KubeconfigOptions } from '#kube/http/kubeconfig.ts';
import type { ClientMetrics } from '#kube/model/metrics.ts';
import type { Caches, KubeApi } from '#kube/model/types.ts';
import type { Clock } from '#shared/ports/clock.ts';
import type { Log } from '#shared/ports/log.ts';

export interface ConnectedCluster {
  readonly api: KubeApi;
  readonly caches: Caches;
  /** For streams that the kubelet endpoint passes on. */
  readonly connection: ClusterConnection;
}

/** By the name of the cluster, and by the nonce of the proxy in front of it. */
export type ProxyTokens = NonNullable<KubeconfigOptions['proxyToken']>;

/** Lives until `signal` aborts. Fails with `invalid_input` when the text is no kubeconfig. */
export type ConnectCluster = (kubeconfig: string, signal: AbortSignal) => Promise<ConnectedCluster>;

export const createConnectCluster =
  (deps: {
    readonly clock: Clock;
    readonly log: Log;
    readonly proxyToken?: ProxyTokens;
    readonly metrics?: ClientMetrics;
    readonly openToken?: KubeconfigOptions['openToken'];
  }): ConnectCluster =>
  async (kubeconfig, signal) => {
    const { proxyToken, openToken } = deps;
    const options = { isFromCluster: true, ...(proxyToken && { proxyToken }), ...(openToken && { openToken }) };
    const connection = await connectKubeconfig(kubeconfig, options);
    signal.addEventListener('abort', () => connection.close(), { once: true });
    return { api: createKubeApi(connection, deps), caches: createCaches(connection, deps, signal), connection };
  };
