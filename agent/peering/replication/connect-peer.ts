/** Opens a provider's API server with a consumer identity. */
import { createCaches } from '#kube/cache/informer-factory.ts';
import { createKubeApi } from '#kube/http/client.ts';
import { connectKubeconfig, type KubeconfigOptions } from '#kube/http/kubeconfig.ts';
import type { ClientMetrics } from '#kube/model/metrics.ts';
import type { Clock } from '#shared/ports/clock.ts';
import type { Log } from '#shared/ports/log.ts';
import type { ConnectPeer } from '../model/deps.ts';

export const createConnectPeer =
  (deps: {
    readonly clock: Clock;
    readonly log: Log;
    readonly proxyToken?: KubeconfigOptions['proxyToken'];
    readonly metrics?: ClientMetrics;
    readonly openToken?: KubeconfigOptions['openToken'];
  }): ConnectPeer =>
  async (kubeconfig, signal) => {
    const { proxyToken, openToken } = deps;
    const options = { isFromCluster: true, ...(proxyToken && { proxyToken }), ...(openToken && { openToken }) };
    const connection = await connectKubeconfig(kubeconfig, options);
    signal.addEventListener('abort', () => connection.close(), { once: true });
    return { api: createKubeApi(connection, deps), caches: createCaches(connection, deps, signal) };
  };
