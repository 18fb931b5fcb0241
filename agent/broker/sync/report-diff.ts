/** The last report of each peering that the broker acknowledged, so that only differences are sent. */
import type { Clock } from '#shared/ports/clock.ts';
import type { ObservedSet } from '#shared/schema/protocol/agent-protocol.ts';
import { newsOf } from './observed-objects.ts';

/** After this time a report is also sent when only volatile fields differ, such as the latency of a link. */
const freshMs = 5 * 60_000;

export interface Told {
  /** The sets of `current` that differ from their last report by more than volatile fields, or by these for longer than `freshMs`. */
  news(current: readonly ObservedSet[]): ObservedSet[];
  /** The broker has acknowledged `sent`; reports of peerings that are not in `current` are forgotten. */
  remember(sent: readonly ObservedSet[], current: readonly ObservedSet[]): void;
}

export function createTold(clock: Clock): Told {
  const told = new Map<string, { readonly all: string; readonly news: string; readonly at: number }>();
  return {
    news: (current) =>
      current.filter((set) => {
        const before = told.get(set.peering);
        if (!before || before.news !== JSON.stringify(newsOf(set))) return true;
        return clock.now() - before.at >= freshMs && before.all !== JSON.stringify(set);
      }),
    remember(sent, current) {
      const at = clock.now();
      for (const set of sent)
        told.set(set.peering, { all: JSON.stringify(set), news: JSON.stringify(newsOf(set)), at });
      const alive = new Set(current.map((set) => set.peering));
      for (const peering of told.keys()) if (!alive.has(peering)) told.delete(peering);
    },
  };
}
