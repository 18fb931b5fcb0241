import { describe, expect, test } from 'vitest';
import { AppError } from '#shared/errors/app-error.ts';
import { ManualClock } from '#shared/ports/clock.ts';
import { happenedOn, lineBehind, OutageTracker, whenLeftBehind } from './outage-tracker.ts';

const waitOn = (line: OutageTracker, heard: string[], name: string) => line.onReturn(() => heard.push(name));

describe('the outage tracker of an API server', () => {
  test('calls every waiter, once, when the server answers after an outage', () => {
    const line = new OutageTracker();
    const heard: string[] = [];
    line.failed(1_000);
    waitOn(line, heard, 'a');
    const forget = waitOn(line, heard, 'gone');
    waitOn(line, heard, 'b');
    line.failed(30_000);
    forget();
    line.answered(31_000);
    expect(heard).toEqual(['a', 'b']);
    line.failed(32_000);
    line.answered(40_000);
    expect(heard).toEqual(['a', 'b']);
  });

  test('gives up what was asked in a long outage, neither what was just asked nor what has ended', () => {
    const clock = new ManualClock();
    const line = new OutageTracker();
    const givenUp: string[] = [];
    const ask = (name: string) => whenLeftBehind(line, clock, () => givenUp.push(name));
    line.failed(clock.now());
    ask('long ago');
    const ended = ask('ended');
    clock.advance(5_000);
    ask('just now');
    ended();
    line.answered(clock.now());
    expect(givenUp).toEqual(['long ago']);
  });

  test('gives up nothing after a short one, for a server that is slow would only be asked more', () => {
    const clock = new ManualClock();
    const line = new OutageTracker();
    const givenUp: string[] = [];
    line.failed(clock.now());
    whenLeftBehind(line, clock, () => givenUp.push('slow'));
    clock.advance(4_999);
    line.answered(clock.now());
    expect(givenUp).toEqual([]);
  });

  test('wakes no waiter while the server answers others, so that a client that fails alone does not fail more often', () => {
    const line = new OutageTracker();
    const heard: string[] = [];
    for (let now = 0; now < 60_000; now += 500) {
      line.failed(now);
      waitOn(line, heard, 'failing alone');
      line.answered(now + 100);
    }
    expect(heard).toEqual([]);
  });

  test('is found behind an error that was wrapped on its way', () => {
    const line = new OutageTracker();
    const below = happenedOn(line, new AppError('kube_unreachable', 'refused'));
    expect(lineBehind(new AppError('internal', 'no session', { cause: new Error('why', { cause: below }) }))).toBe(
      line,
    );
    expect(lineBehind(new AppError('kube_unreachable', 'of no tracker'))).toBeUndefined();
  });
});
