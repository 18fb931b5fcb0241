import { describe, expect, test } from 'vitest';
import { figuresEveryMs, worthWriting } from './connection-status.ts';
import { withHost } from './host-conditions.ts';

const now = Date.UTC(2026, 0, 1);
const applied = (host: string) => ({
  host,
  type: 'Applied' as const,
  status: 'True' as const,
  lastTransitionTime: '2025-01-01T00:00:00Z',
});
const isHost = (host: string) => host !== 'dead';

describe('conditions of hosts', () => {
  test('a host that applied a configuration says so, beside the others', () => {
    expect(withHost([applied('b')], 'a', { applied: true }, isHost, now)).toEqual([
      { host: 'a', type: 'Applied', status: 'True', lastTransitionTime: '2026-01-01T00:00:00Z' },
      applied('b'),
    ]);
  });

  test('what would not change comes back as it was, so that nothing is written', () => {
    const list = [applied('a'), applied('b')];
    expect(withHost(list, 'a', { applied: true }, isHost, now)).toBe(list);
    expect(withHost(list, 'c', undefined, isHost, now)).toBe(list);
  });

  test('an error replaces success and names why', () => {
    expect(withHost([applied('a')], 'a', { applied: false, message: 'no such device' }, isHost, now)).toEqual([
      {
        host: 'a',
        type: 'Error',
        status: 'True',
        lastTransitionTime: '2026-01-01T00:00:00Z',
        reason: 'NotTaken',
        message: 'no such device',
      },
    ]);
  });

  test.each([
    { what: 'hosts that are gone', outcome: { applied: true } as const, before: ['a', 'dead'], after: ['a'] },
    { what: 'its own when it is no target any more', outcome: undefined, before: ['a', 'b'], after: ['b'] },
  ])('leaves out entries of $what', ({ outcome, before, after }) => {
    expect(withHost(before.map(applied), 'a', outcome, isHost, now).map(({ host }) => host)).toEqual(after);
  });
});

describe('the status of a connection is written', () => {
  const report = { value: 'Connected', rttMs: 3, mtu: 1340, peerEndpoint: '192.0.2.1:5' } as const;
  const last = { fields: worthWriting(report, undefined, now)!, at: now };
  test.each([
    { when: 'nothing was written yet', report, last: undefined, after: 0, written: true },
    { when: 'only the latency moved', report: { ...report, rttMs: 9 }, last, after: 9_999, written: false },
    { when: 'ten seconds have passed', report: { ...report, rttMs: 9 }, last, after: figuresEveryMs, written: true },
    { when: 'the link failed', report: { ...report, value: 'Error' as const }, last, after: 1, written: true },
    { when: 'the peer moved', report: { ...report, peerEndpoint: '192.0.2.2:5' }, last, after: 1, written: true },
    { when: 'the path was measured', report: { ...report, mtu: 1280 }, last, after: 1, written: true },
  ])('$when: $written', ({ report: now_, last: before, after, written }) => {
    expect(worthWriting(now_, before, now + after) !== undefined).toBe(written);
  });

  test('the peer says what ranges it has: once, and again when it says others', () => {
    const ranges = { pod: ['10.1.0.0/16'], external: ['10.2.0.0/16'] };
    const fields = worthWriting(report, last, now + 1, ranges);
    expect(fields?.peerRanges).toEqual(ranges);
    const told = { fields: fields!, at: now };
    expect(worthWriting(report, told, now + 2, { ...ranges })).toBeUndefined();
    expect(worthWriting(report, told, now + 2, { ...ranges, pod: ['10.3.0.0/16'] })).toBeDefined();
  });
});
