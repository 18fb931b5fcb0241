/**
 * What consumers may be granted together, and what of it one slice gets. A cluster shares a percentage of what its own pods leave free; slices
 * shrink at once when that becomes less, the youngest first, and grow a while after. Pure.
 */
import { type Holding, roundDown } from '#shared/domain/capacity-share.ts';
import type { Nanos } from '#shared/domain/quantity.ts';

/** A slice that shrank does not grow for so long: pods of the provider that come and go do not make it flap. */
export const growAfterMs = 5 * 60_000;
/** A slice that gets less than it wants gets a multiple of this part of it, so that small changes of what is free change nothing. */
const steps = 20n;

export interface Supply {
  /** The nodes that are ready and take pods: new and larger grants come out of these. */
  readonly ready: Holding;
  /** Besides those, nodes that were lost only a moment ago: a node that restarts makes no slice shrink. */
  readonly lasting: Holding;
}

/** All of `wanted`, or the largest step of it that is not more than `most`. */
function fitting(resource: string, wanted: Nanos, most: Nanos): Nanos {
  if (most <= 0n) return 0n;
  if (most >= wanted) return wanted;
  return roundDown(resource, (wanted * ((most * steps) / wanted)) / steps);
}

export interface Portion {
  readonly resource: string;
  readonly wanted: Nanos;
  /** What this slice has now. */
  readonly current: Nanos;
  /** What slices older than this one have now, and what all others have. */
  readonly older: Nanos;
  readonly others: Nanos;
  /** Of what is free on ready nodes; of what is free on those that last; of all that those that last could ever give. */
  readonly share: Nanos;
  readonly lasting: Nanos;
  readonly ceiling: Nanos;
  readonly mayGrow: boolean;
}

/**
 * Never more than `wanted`. More than `current` only as far as the share has room beside everything that others have; less as soon as what the older
 * slices have leaves less of the lasting share.
 */
export function portion(of: Portion): Nanos {
  const { resource, wanted, current, older, others, share, lasting, ceiling, mayGrow } = of;
  const kept = current < wanted ? current : wanted;
  const goal = wanted < ceiling ? wanted : roundDown(resource, ceiling);
  const most = lasting - older;
  if (kept > most) return fitting(resource, goal, most);
  const grown = fitting(resource, goal, share - others);
  return mayGrow && grown > kept ? grown : kept;
}
