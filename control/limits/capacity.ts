/**
 * How many clusters and peerings a tenant has, and whether one more fits. A counter for each of the two is changed by the transaction that makes or
 * ends what it counts, so it is exact at every moment, also after crashes and races, and a request reads one item for it.
 *
 * Counters are not sharded: each has one writer per cluster or peering made or ended, in a partition of its tenant. A tenant within the default limit of
 * 3,000 requests a minute adds 50 times a second, 100 of the 1,000 write units that DynamoDB gives a partition; two additions at the same moment cost one
 * of them another attempt of the adapter, not another decision.
 */
import { AppError } from '#shared/errors/app-error.ts';
import type { ClusterRecord } from '../model/cluster.ts';
import type { ControlDeps } from '../model/deps.ts';
import type { PeeringRecord } from '../model/peering-records.ts';
import type { KnownTenants } from '../model/tenant.ts';
import type { Op } from '../ports/store.ts';
import { type Counted, key } from '../store/keys.ts';

export interface Capacity {
  count(tenant: string, what: Counted, signal?: AbortSignal): Promise<number>;
  /** Throws `limit_reached`, naming limit and use. */
  mustHaveRoom(tenant: string, what: Counted, signal?: AbortSignal): Promise<void>;
  /**
   * Counts one more, for the transaction that makes it, which conflicts if others took the last room meanwhile: decide again then. Throws
   * `limit_reached` as `mustHaveRoom` does.
   */
  take(tenant: string, what: Counted, signal?: AbortSignal): Promise<Op>;
}

export function createCapacity({ store }: Pick<ControlDeps, 'store'>, known: KnownTenants): Capacity {
  async function count(tenant: string, what: Counted, signal?: AbortSignal): Promise<number> {
    const { pk, sk } = key.count(tenant, what);
    return (await store.get<number>(pk, sk, signal))?.value ?? 0;
  }

  async function limitWithRoom(tenant: string, what: Counted, signal?: AbortSignal): Promise<number> {
    const [limits, used] = await Promise.all([known.limits(tenant, signal), count(tenant, what, signal)]);
    const limit = limits[what];
    if (used < limit) return limit;
    throw new AppError('limit_reached', `the tenant has ${used} ${what}, its limit is ${limit}`, {
      detail: { limit, used, of: what },
    });
  }

  return {
    count,
    async mustHaveRoom(tenant, what, signal) {
      await limitWithRoom(tenant, what, signal);
    },
    async take(tenant, what, signal) {
      return { op: 'add', ...key.count(tenant, what), by: 1, atMost: await limitWithRoom(tenant, what, signal) };
    },
  };
}

type Record = ClusterRecord | PeeringRecord;

/** Peerings across tenants count in both, by their copies. */
const counts = (value: Record | undefined): number => {
  if (value === undefined) return 0;
  const lives = 'spec' in value ? value.state.phase !== 'Gone' : value.state === 'joined';
  return lives ? 1 : 0;
};

/** What a change of one record of a tenant does to its counter, without regard to limits. */
export function countOps(tenant: string, what: Counted, before: Record | undefined, after: Record | undefined): Op[] {
  const by = counts(after) - counts(before);
  return by === 0 ? [] : [{ op: 'add', ...key.count(tenant, what), by }];
}
