/** The connection to one provider that a virtual node works through. */
import type { ClusterConnection } from '#kube/http/connection.ts';
import { connectKubeconfig, type KubeconfigOptions } from '#kube/http/kubeconfig.ts';
import type { ClientMetrics } from '#kube/model/metrics.ts';
import type { Caches, KubeApi } from '#kube/model/types.ts';
import { openCluster } from '#kube/open-cluster.ts';
import type { Clock } from '#shared/ports/clock.ts';
import type { Log } from '#shared/ports/log.ts';

export interface ProviderConnection {
  readonly api: KubeApi;
  readonly caches: Caches;
  /** For streams that the kubelet endpoint passes on. */
  readonly connection: ClusterConnection;
}

/** By the name of the provider's cluster, and by the nonce of the proxy in front of it. */
export type ProxyTokens = NonNullable<KubeconfigOptions['proxyToken']>;

/** Lives until `signal` aborts. Fails with `invalid_input` when the text is no kubeconfig. */
export type ConnectProvider = (kubeconfig: string, signal: AbortSignal) => Promise<ProviderConnection>;

export const createConnectProvider =
  (deps: {
    readonly clock: Clock;
    readonly log: Log;
    readonly proxyToken?: ProxyTokens;
    readonly metrics?: ClientMetrics;
    readonly openToken?: KubeconfigOptions['openToken'];
  }): ConnectProvider =>
  async (kubeconfig, signal) => {
    const { proxyToken, openToken } = deps;
    const options = { isFromCluster: true, ...(proxyToken && { proxyToken }), ...(openToken && { openToken }) };
    const connection = await connectKubeconfig(kubeconfig, options);
    signal.addEventListener('abort', () => connection.close(), { once: true });
    const { api, caches } = openCluster(connection, deps, signal);
    return { api, caches, connection };
  };
