import fc from 'fast-check';
import { expect, test } from 'vitest';
import { busyForMs, comeBackMs, everySeconds, intervalsOf, mustNote, offlineFrom } from './poll-policy.ts';

const now = 1_000_000_000;

test.each([
  { when: 'nothing was ever asked', revision: undefined, idle: 300, intervals: [300, 60] },
  { when: 'something was just asked', revision: { revision: 1, at: now }, idle: 300, intervals: [15, 5] },
  {
    when: 'something was asked a while ago',
    revision: { revision: 1, at: now - busyForMs },
    idle: 300,
    intervals: [300, 60],
  },
  {
    when: 'the revision is older than the times of revisions',
    revision: { revision: 9 },
    idle: 300,
    intervals: [300, 60],
  },
  {
    when: 'the operator wants to hear of idle agents oftener than of busy ones',
    revision: { revision: 1, at: now },
    idle: 3,
    intervals: [3, 3],
  },
])('when $when, agents are told $intervals', ({ revision, idle, intervals }) => {
  const { heartbeatSeconds, pollSeconds } = intervalsOf(revision, now, idle);
  expect([heartbeatSeconds, pollSeconds]).toEqual(intervals);
});

test('an agent of version 1 is judged by what it does, not by what it is told', () => {
  const intervals = { heartbeatSeconds: 300, pollSeconds: 60 };
  expect([everySeconds(intervals), everySeconds(intervals, 1), everySeconds(intervals, 2)]).toEqual([30, 30, 300]);
});

test('an agent that is heard of in every interval is never offline, and one that falls silent is within three', () => {
  const gaps = fc.array(fc.double({ min: 0.01, max: 1, noNaN: true }), { minLength: 1, maxLength: 40 });
  fc.assert(
    fc.property(gaps, fc.constantFrom(15, 30, 300), fc.boolean(), (waits, every, ping) => {
      let seen = { at: now, every };
      let time = now;
      for (const wait of waits) {
        time += wait * every * 1_000;
        expect(time).toBeLessThan(offlineFrom(seen));
        if (mustNote(seen, { now: time, every, ping })) seen = { at: time, every };
      }
      expect(offlineFrom(seen) - time).toBeGreaterThan(1.5 * every * 1_000);
      expect(offlineFrom(seen) - time).toBeLessThanOrEqual(3 * every * 1_000);
    }),
  );
});

test('half of the heartbeats in time are not written', () => {
  let seen = { at: now, every: 300 };
  let writes = 0;
  for (let beat = 1; beat <= 288; beat += 1) {
    const time = now + beat * 300_000;
    if (!mustNote(seen, { now: time, every: 300, ping: true })) continue;
    seen = { at: time, every: 300 };
    writes += 1;
  }
  expect(writes).toBe(144);
});

test('a closed doorbell shortens the wait and never lengthens it', () => {
  expect(offlineFrom({ at: now, every: 300, lostAt: now + 1_000 })).toBe(now + 1_000 + comeBackMs);
  expect(offlineFrom({ at: now, every: 15, lostAt: now + 1_000 })).toBe(now + 45_000);
  expect(mustNote({ at: now, every: 300, lostAt: now + 1 }, { now: now + 2, every: 300, ping: true })).toBe(true);
});
