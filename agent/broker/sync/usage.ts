/** What this cluster grants each consumer and what of it is in use, from its Quotas, which the agent watches anyway. */
import type { Caches } from '#kube/model/types.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import { type Amounts, addAmounts, amountsOf } from '#shared/domain/pod-resources.ts';
import { quotas } from '#shared/schema/liqo/quota.ts';
import type { Usage } from './samples.ts';

export interface PeerUsage {
  /** Undefined: nothing is granted to this peer. */
  of(peer: string | undefined): Usage | undefined;
  ready(signal: AbortSignal): Promise<unknown>;
}

const nanosPer = { millicore: 1_000_000n, byte: 1_000_000_000n };

export function createUsage(caches: Caches): PeerUsage {
  const cache = caches.cache(quotas);
  return {
    ready: (signal) => cache.synced(signal),
    of(peer) {
      const own = cache.list().filter(({ metadata }) => metadata.labels?.[label.remoteClusterId] === peer);
      if (peer === undefined || own.length === 0) return undefined;
      const granted = own.map(({ spec }) => amountsOf(spec.resources)).reduce(addAmounts);
      const used = own.map(({ status }) => amountsOf(status?.used)).reduce(addAmounts);
      return {
        ...pair('cpu', nanosPer.millicore, granted, used),
        ...pair('memory', nanosPer.byte, granted, used),
      };
    },
  };
}

/** Nothing of a resource without a limit: there is no share of it. */
function pair(resource: 'cpu' | 'memory', unit: bigint, granted: Amounts, used: Amounts): Usage {
  const limit = granted[resource];
  if (limit === undefined) return {};
  return { [`${resource}Granted`]: whole(limit / unit), [`${resource}Used`]: whole((used[resource] ?? 0n) / unit) };
}

/** As a number that JSON keeps exactly. */
const whole = (amount: bigint): number => Math.min(Number(amount), Number.MAX_SAFE_INTEGER);
