import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ManualClock } from '#shared/ports/clock.ts';
import type { ObservedSet } from '#shared/schema/protocol/agent-protocol.ts';
import { mostSamplesInReport, mostSamplesOfPeering } from '#shared/schema/protocol/samples.ts';
import { createSamples, type Usage } from './samples.ts';

const base = { apiVersion: 'networking.liqo.io/v1beta1', namespace: 'liqo-tenant-milan', uid: 'u1' };
const connection = (data: object) => ({ ...base, kind: 'Connection', name: 'gw-milan', data: { ...data } });
const setOf = (data?: object, peering = 'pe_1'): ObservedSet => ({
  peering,
  role: 'consumer',
  appliedRevision: 1,
  objects: data === undefined ? [] : [connection(data)],
  refusals: [],
});
const up = (ms: number, received: number, sent: number, packetLoss = 0) =>
  setOf({ value: 'Connected', latency: `${ms}ms`, receivedBytes: received, sentBytes: sent, packetLoss });

/** At the beginning of a minute. */
function measuring(usage: () => Usage | undefined = () => undefined) {
  const clock = new ManualClock(Date.UTC(2026, 0, 1, 12));
  const samples = createSamples(clock, usage);
  const later = (ms: number, set: ObservedSet): void => {
    clock.advance(ms);
    samples.note([set]);
  };
  return { samples, later, of: (peering = 'pe_1') => samples.take([peering])[0]?.samples ?? [] };
}
const noon = Date.UTC(2026, 0, 1, 12) / 1_000;

describe('the minutes of a link', () => {
  test('are the mean of its round trips, its highest loss, and what its counters grew by in a second', () => {
    const { later, of } = measuring();
    later(0, up(10, 1_000, 500));
    later(10_000, up(20, 11_000, 1_500, 4));
    later(10_000, up(30, 21_000, 2_500, 1));
    expect(of()).toEqual([]);
    later(40_000, up(99, 21_000, 2_500));
    expect(of()).toEqual([{ at: noon, rttMicros: 20_000, packetLoss: 4, received: 1_000, sent: 100 }]);
  });

  test('count no byte twice and none of a device that was made again, and say nothing of a link that is away', () => {
    const { later, of } = measuring();
    later(0, up(10, 50_000, 50_000));
    later(10_000, up(10, 60_000, 50_000));
    later(10_000, up(10, 100, 100));
    later(10_000, up(10, 10_100, 100));
    later(31_000, setOf({ value: 'Error', packetLoss: 100 }));
    later(60_000, setOf());
    expect(of()).toEqual([
      { at: noon, rttMicros: 10_000, packetLoss: 0, received: 1_000, sent: 0 },
      { at: noon + 60, packetLoss: 100 },
    ]);
    later(60_000, setOf());
    expect(of()).toHaveLength(2);
  });

  test('do not take what passed while nothing was looked at for the traffic of one minute', () => {
    const { later, of } = measuring();
    later(0, up(10, 0, 0));
    later(3_600_000, up(10, 9e9, 9e9));
    later(10_000, up(10, 9e9 + 10_000, 9e9));
    later(50_000, up(10, 9e9 + 10_000, 9e9));
    expect(of().at(-1)).toMatchObject({ received: 1_000, sent: 0 });
  });

  test('say of a quiet link that nothing passes', () => {
    const { later, of } = measuring();
    for (let seconds = 0; seconds <= 240; seconds += 10) later(seconds === 0 ? 0 : 10_000, up(10, 7_000, 7_000));
    expect(of().slice(1)).toEqual(
      [1, 2, 3].map((minute) => expect.objectContaining({ at: noon + 60 * minute, received: 0, sent: 0 })),
    );
  });

  test('are kept until a report was answered, and a report that failed has them again', () => {
    const { later, samples, of } = measuring();
    later(0, up(10, 0, 0));
    later(60_000, up(10, 0, 0));
    const sent = samples.take(['pe_1', 'pe_2']);
    expect(samples.waiting('pe_1')).toBe(true);
    later(60_000, up(10, 0, 0));
    expect(of()).toHaveLength(2);
    samples.acknowledge(sent);
    expect(of().map(({ at }) => at)).toEqual([noon + 60]);
    samples.note([]);
    expect(samples.waiting('pe_1')).toBe(false);
  });
});

test('a provider says what it grants and what of it is in use, also without a link', () => {
  let used = 500;
  const { later, of } = measuring(() => ({ cpuGranted: 2_000, cpuUsed: used }));
  later(0, setOf());
  used = 1_500;
  later(30_000, setOf());
  later(30_000, setOf());
  expect(of()).toEqual([{ at: noon, cpuGranted: 2_000, cpuUsed: 1_500 }]);
});

test('samples are bounded, of a peering and of a report, regardless of how long the broker is away', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 200 }), fc.integer({ min: 1, max: 40 }), (minutes, peerings) => {
      const clock = new ManualClock();
      const samples = createSamples(clock, () => undefined);
      const ids = Array.from({ length: peerings }, (_, at) => `pe_${at}`);
      for (let minute = 0; minute < minutes; minute += 1) {
        samples.note(ids.map((id) => setOf({ value: 'Connected', latency: '1ms' }, id)));
        clock.advance(60_000);
      }
      const taken = samples.take(ids);
      for (const { samples: of } of taken) expect(of.length).toBeLessThanOrEqual(mostSamplesOfPeering);
      expect(taken.reduce((sum, { samples: of }) => sum + of.length, 0)).toBe(
        Math.min(mostSamplesInReport, peerings * Math.min(mostSamplesOfPeering, minutes - 1)),
      );
    }),
    { numRuns: 30 },
  );
});
