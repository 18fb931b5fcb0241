/** Keeps the IP by which peers reach this cluster's API server through the link. */
import { rangeIps } from '#agent/model/network-selections.ts';
import type { Controller } from '#kube/model/types.ts';
import { createController, watch } from '#kube/run/controller.ts';
import { services } from '#shared/domain/core-kinds.ts';
import { ipType } from '#shared/domain/network-keys.ts';
import { type Outcome, settled } from '#shared/domain/outcome.ts';
import type { NetworkDeps } from '../../model/deps.ts';
import { ensureExposedService } from './exposed-service.ts';

const name = 'api-server';

export function createApiServerIpController(deps: NetworkDeps): Controller {
  const { cluster, systemNamespace: namespace } = deps;
  const { caches } = cluster;
  const cache = rangeIps(caches);
  const service = caches.cache(services, { namespace: 'default', fieldSelector: 'metadata.name=kubernetes' });

  async function reconcile(_key: string, signal: AbortSignal): Promise<Outcome> {
    const ip = service.get({ namespace: 'default', name: 'kubernetes' })?.spec?.clusterIP;
    if (ip === undefined) return settled;
    return ensureExposedService(cluster, cache, { name, namespace, ipType: ipType.apiServer, clusterIp: ip }, signal);
  }

  return createController(
    {
      name: 'api-server-ip',
      watches: [
        watch(service, () => [name]),
        watch(cache, ({ metadata }) => (metadata.namespace === namespace && metadata.name === name ? [name] : [])),
      ],
      reconcile,
    },
    deps,
  );
}
