/** What a cluster shares of its nodes. Pure. */
import type { Amounts } from './pod-resources.ts';
import type { Nanos } from './quantity.ts';

export interface Holding {
  readonly allocatable: Amounts;
  /** What the pods of this cluster itself request there. */
  readonly own: Amounts;
}

/** `percent` of what is left of `allocatable`, never negative; a resource that no node has is absent. */
export function shareOf({ allocatable, own }: Holding, percent: number): Amounts {
  const share: Record<string, Nanos> = {};
  for (const [resource, amount] of Object.entries(allocatable)) {
    const free = amount - (own[resource] ?? 0n);
    share[resource] = free > 0n ? (free * BigInt(percent)) / 100n : 0n;
  }
  return share;
}
