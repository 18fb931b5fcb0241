/** What an agent sends again when the broker's answer was lost: the broker may have carried the report out. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ManualClock } from '#shared/ports/clock.ts';
import type { ClusterFacts, ObservedSet, PeeringAsk } from '#shared/schema/protocol/agent-protocol.ts';
import { createReportDiff } from './report-diff.ts';

const set = (peering: string, revision: number): ObservedSet => ({
  peering,
  role: 'consumer',
  appliedRevision: revision,
  objects: [],
  refusals: [],
});
const moment = fc.record({
  sets: fc.dictionary(fc.constantFrom('pe_1', 'pe_2', 'pe_3'), fc.nat(2)),
  facts: fc.nat(2),
  asks: fc.nat(2),
  /** What becomes of the request: carried out and answered, carried out without an answer, or lost on its way. */
  fate: fc.constantFrom('answered', 'unanswered', 'lost'),
});

test('after an answered report the broker has what the cluster has, whichever answers were lost before', () => {
  fc.assert(
    fc.property(fc.array(moment, { maxLength: 30 }), (moments) => {
      const reports = createReportDiff(new ManualClock());
      const broker = { sets: new Map<string, number>(), facts: -1, asks: -1 };
      for (const now of moments) {
        const current = {
          sets: Object.entries(now.sets).map(([peering, revision]) => set(peering, revision)),
          facts: { nodes: now.facts } as ClusterFacts,
          asks: now.asks === 0 ? [] : [{ name: `${now.asks}` } as unknown as PeeringAsk],
        };
        const batch = reports.send(current);
        if (now.fate !== 'lost') {
          for (const { peering, appliedRevision } of batch.sets) broker.sets.set(peering, appliedRevision);
          if (batch.facts) broker.facts = batch.facts.nodes;
          if (batch.asks) broker.asks = batch.asks.length === 0 ? 0 : now.asks;
        }
        if (now.fate !== 'answered') continue;
        reports.acknowledge(current);
        expect(current.sets.map(({ peering }) => broker.sets.get(peering))).toEqual(Object.values(now.sets));
        expect([broker.facts, broker.asks]).toEqual([now.facts, now.asks]);
      }
    }),
    { numRuns: 500 },
  );
});

test('what the broker has acknowledged is not sent again', () => {
  const reports = createReportDiff(new ManualClock());
  const current = { sets: [set('pe_1', 1)], facts: { nodes: 1 } as ClusterFacts, asks: [] };
  expect(reports.send(current)).toEqual(current);
  reports.acknowledge(current);
  expect(reports.send(current)).toEqual({ sets: [] });
});
