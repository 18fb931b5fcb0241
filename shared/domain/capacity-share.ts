/** What a cluster shares of its nodes. Pure. */
import { ownMember } from './own-member.ts';
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
    const free = amount - (ownMember(own, resource) ?? 0n);
    share[resource] = free > 0n ? (free * BigInt(percent)) / 100n : 0n;
  }
  return share;
}

const unit: Nanos = 1_000_000_000n;
const mebi: Nanos = unit << 20n;

/** Down to what can be written and read well: thousandths of processors, mebibytes, whole devices. */
export function roundDown(resource: string, amount: Nanos): Nanos {
  const grain = resource === 'cpu' ? unit / 1_000n : /memory|storage/.test(resource) && amount >= mebi ? mebi : unit;
  return amount - (amount % grain);
}
