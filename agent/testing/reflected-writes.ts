/** What reflection writes while it keeps namespace `demo` equal to `demo-cons` at a provider. */
import { type ConnectCluster, createConnectCluster } from '#agent/runtime/connect-cluster.ts';
import type { Cluster, KubeApi } from '#kube/model/types.ts';
import { configMaps, coreEvents, ingresses, secrets, services } from '#shared/domain/core-kinds.ts';
import type { KubeObject, ResourceType } from '#shared/domain/kube-object.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { shadowEndpointSlices } from '#shared/schema/liqo/shadow-endpoint-slice.ts';

interface Clusters {
  readonly consumer: Pick<Cluster, 'api'>;
  readonly provider: Pick<Cluster, 'api'>;
}

const kinds = [configMaps, secrets, services, ingresses, shadowEndpointSlices] as readonly unknown[];
const connect = createConnectCluster({ clock: systemClock, log: silentLog });

export class ReflectedWrites {
  /** Names of what was written to the provider by server-side apply, as often as it was. */
  readonly applied: string[] = [];

  /** For the agent that is watched. */
  readonly connect: ConnectCluster = async (kubeconfig, signal) => {
    const connection = await connect(kubeconfig, signal);
    const api: KubeApi = {
      ...connection.api,
      apply: (type, object, options, until) => {
        this.applied.push(object.metadata.name);
        return connection.api.apply(type, object, options, until);
      },
    };
    return { ...connection, api };
  };

  /** What is written, deleted or said within so long a time. */
  async within(ms: number, clusters: Clusters): Promise<readonly string[]> {
    const [before, applied] = [await versions(clusters), this.applied.length];
    await systemClock.sleep(ms);
    const after = await versions(clusters);
    const changed = [...after, ...before].filter((one) => !before.has(one) || !after.has(one));
    return [...changed, ...this.applied.slice(applied)];
  }
}

async function versions({ consumer, provider }: Clusters): Promise<ReadonlySet<string>> {
  const there = kinds.map((type) => provider.api.list(type as ResourceType<KubeObject>, { namespace: 'demo-cons' }));
  const all = [...(await Promise.all(there)).flat(), ...(await consumer.api.list(coreEvents, { namespace: 'demo' }))];
  return new Set(all.map(({ kind, metadata }) => `${kind} ${metadata.name} ${metadata.resourceVersion}`));
}
