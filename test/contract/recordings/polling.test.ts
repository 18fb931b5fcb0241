import { expect, test } from 'vitest';
import { systemClock } from '#shared/ports/system-clock.ts';
import { recordSession } from './session.ts';

test('behind a proxy that refuses WebSockets, agents peer and unpeer by asking, as often as they are told', async () => {
  // A minute of the agents passes in two seconds; what they sign carries the real time.
  const slept: number[] = [];
  const clock = {
    now: () => systemClock.now(),
    sleep: (ms: number, signal?: AbortSignal) => {
      slept.push(ms);
      return systemClock.sleep(ms / 30, signal);
    },
  };
  const { entries } = await recordSession('test', () => undefined, { refuseUpgrades: true, clock });
  expect(entries.some(({ at }) => at === 'open' || at === 'frame')).toBe(false);
  // As often as the broker says while it is busy.
  expect(slept).toContain(5_000);
  const requested = entries.filter((entry) => entry.at === 'http' && entry.path === '/v1/agent/observed');
  expect(requested.every((entry) => entry.at === 'http' && entry.status === 200)).toBe(true);
});
