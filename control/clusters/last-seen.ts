/** When each agent was last heard: noted seldom, judged by the interval that it was told. */
import { codeOf } from '#shared/errors/app-error.ts';
import type { Intervals } from '#shared/schema/protocol/agent-protocol.ts';
import type { SeenRecord } from '../model/cluster.ts';
import type { Coordinator } from '../model/coordinator.ts';
import type { ControlDeps } from '../model/deps.ts';
import type { RevisionRecord } from '../model/peering-records.ts';
import type { ClusterRef } from '../ports/agent-channel.ts';
import type { Item, Op } from '../ports/store.ts';
import { heardBetween, key, partition } from '../store/keys.ts';
import { everySeconds, intervalsOf, mustNote, offlineFrom } from './poll-policy.ts';

export interface LastSeen extends ClusterRef {
  /** Protocol version of the agent. Absent: 1. */
  readonly protocol?: number;
  /** It is a heartbeat and nothing else. */
  readonly ping?: boolean;
}

type LivenessDeps = Pick<ControlDeps, 'store' | 'clock'> & { readonly heartbeatSeconds: number };

export function createLiveness({ store, clock, heartbeatSeconds }: LivenessDeps, coordinator: Coordinator) {
  /** Both in one read: they lie side by side. */
  async function read({ tenant, clusterId }: ClusterRef, signal?: AbortSignal) {
    const first = key.revision(tenant, clusterId);
    const last = key.seen(tenant, clusterId);
    const { items } = await store.query(
      { partition: partition.heard(tenant), ...heardBetween(clusterId, clusterId), limit: 2 },
      signal,
    );
    return {
      revision: items.find(({ sk }) => sk === first.sk) as Item<RevisionRecord> | undefined,
      seen: items.find(({ sk }) => sk === last.sk) as Item<SeenRecord> | undefined,
    };
  }

  /** Losing the race against another request of the same cluster is as good as winning. */
  async function write(at: ClusterRef, seen: Item<SeenRecord> | undefined, value: SeenRecord, signal?: AbortSignal) {
    const place = key.seen(at.tenant, at.clusterId);
    const op: Op = seen ? { op: 'update', ...place, value, ifVersion: seen.version } : { op: 'put', ...place, value };
    try {
      await store.transact([op], [], signal);
    } catch (error) {
      if (codeOf(error) !== 'version_conflict') throw error;
    }
  }

  return {
    async heard(cluster: LastSeen, signal?: AbortSignal): Promise<Intervals & { readonly revision: number }> {
      const now = clock.now();
      const { revision, seen } = await read(cluster, signal);
      const intervals = intervalsOf(revision?.value, now, heartbeatSeconds);
      const every = everySeconds(intervals, cluster.protocol);
      if (mustNote(seen?.value, { now, every, ping: cluster.ping ?? false })) {
        await write(cluster, seen, { at: now, every }, signal);
        // Back from silence: peerings that were degraded by it want to know.
        if (seen && now >= offlineFrom(seen.value)) await coordinator.lookAtCluster(cluster, signal);
      }
      return { ...intervals, revision: revision?.value.revision ?? 0 };
    },

    async lost(cluster: ClusterRef, signal?: AbortSignal): Promise<void> {
      const { seen } = await read(cluster, signal);
      if (!seen || seen.value.lostAt !== undefined) return;
      await write(cluster, seen, { ...seen.value, lostAt: clock.now() }, signal);
      // So that the sweep looks when its time to come back is over.
      await coordinator.lookAtCluster(cluster, signal);
    },
  };
}
