/** Claims of namespace `shop` on the clusters of `startStorageClusters`, and the agent of the consumer that makes their volumes. */
import { createConnectCluster } from '#agent/runtime/connect-cluster.ts';
import { ReachableProviders } from '#agent/storage/providers/reachable-providers.ts';
import { RemoteClaims } from '#agent/storage/providers/remote-claims.ts';
import { createStorageControllers } from '#agent/storage/storage.ts';
import type { Cluster, KubeApi } from '#kube/model/types.ts';
import { coreEvents, type PersistentVolumeClaim, persistentVolumeClaims } from '#shared/domain/core-kinds.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { eventually } from './eventually.ts';
import type { OffloadingClusters } from './offloading-clusters.ts';

/** The annotation in which the scheduler leaves the node that it has selected. */
export const selectedNode = 'volume.kubernetes.io/selected-node';

const deps = { clock: systemClock, log: silentLog };

/** `world`: asked when a claim is. */
export function storageClaims(world: () => OffloadingClusters) {
  const claim = (name: string) => world().consumer.api.get(persistentVolumeClaims, { namespace: 'shop', name });
  return {
    /** As the scheduler leaves it. */
    makeClaim: (
      name: string,
      node: string,
      more: Record<string, unknown> = {},
      annotations: Record<string, string> = {},
    ) =>
      world().consumer.api.create(persistentVolumeClaims, {
        apiVersion: 'v1',
        kind: 'PersistentVolumeClaim',
        metadata: { namespace: 'shop', name, annotations: { [selectedNode]: node, ...annotations } },
        spec: {
          accessModes: ['ReadWriteOnce'],
          storageClassName: 'liqo',
          resources: { requests: { storage: '1Gi' } },
          ...more,
        },
      } as PersistentVolumeClaim),
    claim,
    /** The real one at the provider. */
    remote: (name: string) => world().provider.api.get(persistentVolumeClaims, { namespace: 'shop-cons', name }),
    bound: (name: string) =>
      eventually(`claim ${name} bound`, async () => {
        const found = await claim(name);
        return found?.status?.phase === 'Bound' ? found : undefined;
      }),
    removeClaim: (name: string) => world().consumer.api.delete(persistentVolumeClaims, { namespace: 'shop', name }),
    event: (name: string, reason: string) =>
      eventually(`event ${reason} of ${name}`, async () =>
        (await world().consumer.api.list(coreEvents, { namespace: 'shop' })).find(
          (one) => one.involvedObject.name === name && one.reason === reason,
        ),
      ),
  };
}

interface AgentPlace {
  /** As which the agent sees its own cluster; the consumer of the world when absent. */
  readonly cluster?: Cluster;
  /** Through which it writes at the provider. */
  readonly there?: KubeApi;
}

/** The controllers of volumes, connected with provider `prov`. Ends with the signal; `ended` resolves then. */
export async function startStorageAgent(
  { consumer, servers }: OffloadingClusters,
  { cluster = consumer, there }: AgentPlace,
  signal: AbortSignal,
): Promise<{ readonly ended: Promise<unknown> }> {
  const peer = await createConnectCluster(deps)(servers.provider.kubeconfig, signal);
  const place = () => ({ kind: 'accepted', remoteNamespace: 'shop-cons' }) as const;
  const facts = { ...deps, consumer: 'cons', provider: 'prov', place };
  const claims = new RemoteClaims({ ...facts, ...peer, ...(there && { api: there }) }, signal);
  const providers = new ReachableProviders();
  const own = { ...deps, cluster, clusterId: 'cons', providers, systemNamespace: 'liqo', podName: 'agent' };
  const ended = Promise.all(createStorageControllers(own).map((controller) => controller.run(signal)));
  claims.follow(new Map([['shop', 'shop-cons']]), signal);
  providers.join('prov', claims, signal);
  return { ended };
}
