/**
 * How many clusters and peerings a tenant has, and whether one more fits. Counted from the items themselves, so that no counter can drift; a
 * count is kept for a minute while it is far from the limit. Writers that race each other may exceed the limit by as many as race.
 */
import { AppError } from '#shared/errors/app-error.ts';
import type { ClusterRecord } from '../model/cluster.ts';
import type { ControlDeps } from '../model/deps.ts';
import type { PeeringRecord } from '../model/peering-records.ts';
import type { KnownTenants } from '../model/tenant.ts';
import { partition } from '../store/keys.ts';

type Counted = 'clusters' | 'peerings';

export interface Capacity {
  count(tenant: string, what: Counted, signal?: AbortSignal): Promise<number>;
  /** Throws `limit_reached`, naming limit and use. */
  mustHaveRoom(tenant: string, what: Counted, signal?: AbortSignal): Promise<void>;
}

interface Kept {
  readonly count: number;
  readonly at: number;
  /** Admitted here since. */
  added: number;
}

const keptMs = 60_000;
/** Nearer to the limit than this share of it, the count must be fresh. */
const margin = 0.1;
const maxKept = 50_000;

export function createCapacity({ store, clock }: Pick<ControlDeps, 'store' | 'clock'>, known: KnownTenants): Capacity {
  const kept = new Map<string, Kept>();

  async function count(tenant: string, what: Counted, signal?: AbortSignal): Promise<number> {
    let total = 0;
    let cursor: string | undefined;
    do {
      const query = { partition: partition[what](tenant), limit: 200, ...(cursor === undefined ? {} : { cursor }) };
      const page = await store.query<ClusterRecord | PeeringRecord>(query, signal);
      total += page.items.filter(({ value }) => isLive(value)).length;
      cursor = page.cursor;
    } while (cursor !== undefined);
    return total;
  }

  return {
    count,
    async mustHaveRoom(tenant, what, signal) {
      const limit = (await known.limits(tenant, signal))[what];
      const name = `${what}/${tenant}`;
      let entry = kept.get(name);
      const near = entry && entry.count + entry.added >= limit * (1 - margin) - 1;
      if (!entry || near || clock.now() - entry.at >= keptMs) {
        entry = { count: await count(tenant, what, signal), at: clock.now(), added: 0 };
        if (kept.size >= maxKept) kept.clear();
        kept.set(name, entry);
      }
      const used = entry.count + entry.added;
      if (used >= limit) {
        throw new AppError('limit_reached', `the tenant has ${used} ${what}, its limit is ${limit}`, {
          detail: { limit, used, of: what },
        });
      }
      entry.added += 1;
    },
  };
}

const isLive = (value: ClusterRecord | PeeringRecord): boolean =>
  'spec' in value ? value.state.phase !== 'Gone' : value.state === 'joined';
