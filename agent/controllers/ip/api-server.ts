/** Keeps the IP by which peers reach this cluster's API server through the link. */
import { createController, watch } from '#agent/kube/controller.ts';
import type { Applied, Controller } from '#agent/kube/types.ts';
import { services } from '#shared/domain/core-kinds.ts';
import { apiVersionOf } from '#shared/domain/kube-object.ts';
import { fieldManager, label } from '#shared/domain/liqo-keys.ts';
import { ipType, networkLabel } from '#shared/domain/network-keys.ts';
import { again, type Outcome, settled } from '#shared/domain/outcome.ts';
import type { Ip } from '#shared/schema/liqo/ip.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import type { NetworkDeps } from '../network-deps.ts';
import { deleteObject } from '../peering-writes.ts';

const name = 'api-server';

export function createApiServerIpController(deps: NetworkDeps): Controller {
  const { cluster, systemNamespace: namespace } = deps;
  const { api, caches } = cluster;
  const type = networkKinds.ips;
  const cache = caches.cache(type);
  const service = caches.cache(services, { namespace: 'default', fieldSelector: 'metadata.name=kubernetes' });

  async function reconcile(_key: string, signal: AbortSignal): Promise<Outcome> {
    const ip = service.get({ namespace: 'default', name: 'kubernetes' })?.spec?.clusterIP;
    const known = cache.get({ namespace, name });
    if (ip === undefined || known?.spec.ip === ip) return settled;
    if (known !== undefined) {
      if (known.metadata.deletionTimestamp === undefined) await deleteObject(api, type, known, signal);
      return again(1_000);
    }
    const wanted: Applied<Ip> = {
      apiVersion: apiVersionOf(type),
      kind: type.kind,
      metadata: { name, namespace, labels: { [label.managed]: 'true', [networkLabel.ipType]: ipType.apiServer } },
      spec: { ip },
    };
    await api.apply(type, wanted, { fieldManager: fieldManager.agent }, signal);
    return settled;
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
