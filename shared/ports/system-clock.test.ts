import { describe, expect, test } from 'vitest';
import { systemClock } from './system-clock.ts';

describe('the real clock', () => {
  test('wakes a sleeper with the reason of its signal', async () => {
    const stop = new AbortController();
    const asleep = systemClock.sleep(60_000, stop.signal);
    stop.abort(new Error('enough'));
    await expect(asleep).rejects.toThrow('enough');
    await expect(systemClock.sleep(1, stop.signal)).rejects.toThrow('enough');
  });

  test('does not end a sleep of months at once', async () => {
    const stop = new AbortController();
    const first = await Promise.race([
      systemClock.sleep(2 ** 33, stop.signal).catch(() => 'aborted'),
      systemClock.sleep(5).then(() => 'short'),
    ]);
    stop.abort();
    expect(first).toBe('short');
  });

  test('calls back after its time, not at once after months, and not when it was told to let be', async () => {
    const called: string[] = [];
    const undo = ['now', 'months', 'undone'].map((what) =>
      systemClock.after?.(what === 'months' ? 2 ** 33 : 5, () => called.push(what)),
    );
    undo[2]?.();
    await systemClock.sleep(30);
    undo[1]?.();
    expect(called).toEqual(['now']);
  });
});
