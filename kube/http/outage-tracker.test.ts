import { describe, expect, test } from 'vitest';
import { AppError } from '#shared/errors/app-error.ts';
import { ManualClock } from '#shared/ports/clock.ts';
import { happenedOn, OutageTracker, outageTrackerBehind, whenLeftBehind } from './outage-tracker.ts';

const waitOn = (tracker: OutageTracker, calls: string[], name: string) => tracker.onReturn(() => calls.push(name));

describe('the outage tracker of an API server', () => {
  test('calls every waiter, once, when the server answers after an outage', () => {
    const tracker = new OutageTracker();
    const calls: string[] = [];
    tracker.failed(1_000);
    waitOn(tracker, calls, 'a');
    const forget = waitOn(tracker, calls, 'gone');
    waitOn(tracker, calls, 'b');
    tracker.failed(30_000);
    forget();
    tracker.answered(31_000);
    expect(calls).toEqual(['a', 'b']);
    tracker.failed(32_000);
    tracker.answered(40_000);
    expect(calls).toEqual(['a', 'b']);
  });

  test('gives up what was asked in a long outage, neither what was just asked nor what has ended', () => {
    const clock = new ManualClock();
    const tracker = new OutageTracker();
    const givenUp: string[] = [];
    const ask = (name: string) => whenLeftBehind(tracker, clock, () => givenUp.push(name));
    tracker.failed(clock.now());
    ask('long ago');
    const ended = ask('ended');
    clock.advance(5_000);
    ask('just now');
    ended();
    tracker.answered(clock.now());
    expect(givenUp).toEqual(['long ago']);
  });

  test('gives up nothing after a short one, for a server that is slow would only be asked more', () => {
    const clock = new ManualClock();
    const tracker = new OutageTracker();
    const givenUp: string[] = [];
    tracker.failed(clock.now());
    whenLeftBehind(tracker, clock, () => givenUp.push('slow'));
    clock.advance(4_999);
    tracker.answered(clock.now());
    expect(givenUp).toEqual([]);
  });

  test('wakes no waiter while the server answers others, so that a client that fails alone does not fail more often', () => {
    const tracker = new OutageTracker();
    const calls: string[] = [];
    for (let now = 0; now < 60_000; now += 500) {
      tracker.failed(now);
      waitOn(tracker, calls, 'failing alone');
      tracker.answered(now + 100);
    }
    expect(calls).toEqual([]);
  });

  test('is found behind an error that was wrapped on its way', () => {
    const tracker = new OutageTracker();
    const below = happenedOn(tracker, new AppError('kube_unreachable', 'refused'));
    expect(
      outageTrackerBehind(new AppError('internal', 'no session', { cause: new Error('why', { cause: below }) })),
    ).toBe(tracker);
    expect(outageTrackerBehind(new AppError('kube_unreachable', 'of no tracker'))).toBeUndefined();
  });
});
