/** `Peering` objects: what people ask for inside the cluster goes to the broker, and the broker's answer into their status. */
import type { Cluster } from '#kube/model/types.ts';
import { isChangedOrGone } from '#kube/writes/changed-or-gone.ts';
import { fieldManager } from '#shared/domain/liqo-keys.ts';
import type { Clock } from '#shared/ports/clock.ts';
import { peerings } from '#shared/schema/isthmus/peering.ts';
import type { DesiredAnswer, PeeringAsk } from '#shared/schema/protocol/agent-protocol.ts';

export interface PeeringRequests {
  ready(signal: AbortSignal): Promise<void>;
  read(): readonly PeeringAsk[];
  answer(answers: DesiredAnswer['answers'], signal: AbortSignal): Promise<void>;
}

export function createPeeringRequests(deps: { cluster: Cluster; clock: Clock; onChange: () => void }): PeeringRequests {
  const cache = deps.cluster.caches.cache(peerings);
  cache.subscribe(deps.onChange);
  return {
    ready: (signal) => cache.synced(signal),
    read: () =>
      cache
        .list()
        .map((peering) => ({
          name: peering.metadata.name,
          uid: peering.metadata.uid ?? '',
          generation: peering.metadata.generation ?? 1,
          provider: peering.spec.provider,
          resources: Object.fromEntries(Object.entries(peering.spec.resources ?? {}).map(([k, v]) => [k, String(v)])),
          class: peering.spec.class ?? 'default',
          ...(peering.spec.owner === undefined ? {} : { owner: peering.spec.owner }),
          ...(peering.spec.network === undefined ? {} : { network: peering.spec.network }),
          deleting: peering.metadata.deletionTimestamp !== undefined,
        }))
        .sort((a, b) => (a.name < b.name ? -1 : 1)),
    async answer(answers, signal) {
      for (const { name, uid, ...status } of answers) {
        const live = cache.get({ name });
        if (live?.metadata.uid !== uid || same(live.status, status)) continue;
        const object = {
          apiVersion: 'isthmus.dev/v1alpha1' as const,
          kind: 'Peering' as const,
          metadata: { name, uid },
          status,
        };
        await deps.cluster.api
          .apply(
            peerings,
            object as Parameters<typeof deps.cluster.api.apply<typeof live>>[1],
            { fieldManager: fieldManager.agent, subresource: 'status' },
            signal,
          )
          .catch((error: unknown) => {
            // Deleted meanwhile: there is no status to write.
            if (!isChangedOrGone(error)) throw error;
          });
      }
    },
  };
}

const same = (a: unknown, b: unknown): boolean => {
  const left = a as Record<string, unknown> | undefined;
  return (
    left !== undefined &&
    Object.entries(b as Record<string, unknown>).every(
      ([key, value]) => JSON.stringify(left[key]) === JSON.stringify(value),
    )
  );
};
