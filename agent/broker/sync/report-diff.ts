/** What the broker is known to have: the last acknowledged report of each peering, of the facts and of the asks. Only differences are sent. */
import type { Clock } from '#shared/ports/clock.ts';
import type { ClusterFacts, ObservedBatch, ObservedSet, PeeringAsk } from '#shared/schema/protocol/agent-protocol.ts';
import { newsOf } from './observed-objects.ts';

/** After this time a report is also sent when only volatile fields differ, such as the latency of a link. */
const freshMs = 5 * 60_000;

interface Report {
  readonly sets: readonly ObservedSet[];
  readonly facts: ClusterFacts;
  readonly asks: readonly PeeringAsk[];
}

export interface ReportDiff {
  /**
   * The sets of `current` that differ from their last report by more than volatile fields, or by these for longer than `freshMs`; or of which samples
   * wait for that long.
   */
  news(current: readonly ObservedSet[]): ObservedSet[];
  /**
   * The part of `current` to be sent now. From here on the broker may have either state of that part until `acknowledge`: a request
   * that fails may have been carried out, so what it held is sent again, also when the cluster has changed back meanwhile.
   */
  send(current: Report): ObservedBatch;
  /** The broker has answered the last `send`; reports of peerings that are not in `current` are forgotten. */
  acknowledge(current: Report): void;
}

/** `samplesWait`: whether there are samples of this peering that the broker does not have. */
export function createReportDiff(clock: Clock, samplesWait: (peering: string) => boolean = () => false): ReportDiff {
  const acknowledged = new Map<string, { readonly all: string; readonly news: string; readonly at: number }>();
  let facts: string | undefined;
  let asks: string | undefined;
  let sent: readonly ObservedSet[] = [];
  const news = (current: readonly ObservedSet[]): ObservedSet[] =>
    current.filter((set) => {
      const before = acknowledged.get(set.peering);
      if (!before || before.news !== JSON.stringify(newsOf(set))) return true;
      return clock.now() - before.at >= freshMs && (samplesWait(set.peering) || before.all !== JSON.stringify(set));
    });
  return {
    news,
    send(current) {
      const changed = news(current.sets);
      const batch: ObservedBatch = {
        sets: changed,
        ...(JSON.stringify(current.facts) === facts ? {} : { facts: current.facts }),
        ...(JSON.stringify(current.asks) === asks ? {} : { asks: [...current.asks] }),
      };
      for (const set of changed) acknowledged.delete(set.peering);
      if (batch.facts !== undefined) facts = undefined;
      if (batch.asks !== undefined) asks = undefined;
      sent = changed;
      return batch;
    },
    acknowledge(current) {
      const at = clock.now();
      for (const set of sent)
        acknowledged.set(set.peering, { all: JSON.stringify(set), news: JSON.stringify(newsOf(set)), at });
      const alive = new Set(current.sets.map((set) => set.peering));
      for (const peering of acknowledged.keys()) if (!alive.has(peering)) acknowledged.delete(peering);
      facts = JSON.stringify(current.facts);
      asks = JSON.stringify(current.asks);
    },
  };
}
