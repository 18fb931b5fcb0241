import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { waitUntilStable } from './wait-until-stable.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['performance', 'setTimeout'] }));
afterEach(() => void vi.useRealTimers());

test('a wait for rest that fails names what changed last', async () => {
  let n = 0;
  const look = async () => ({ pods: 'same', phase: `phase ${n++}` });
  const failed = expect(waitUntilStable('a cluster', look, { withinMs: 1_500 })).rejects.toThrow(
    /a cluster at rest; last seen: .*phase 1.*became.*phase 2/,
  );
  await vi.advanceTimersByTimeAsync(5_000);
  await failed;
});

test('a wait for rest that has too little time for its looks says so', async () => {
  const look = async () => 'the same';
  const failed = expect(waitUntilStable('a cluster', look, { withinMs: 1_500, looks: 4 })).rejects.toThrow(
    /a cluster at rest; last seen: too few looks/,
  );
  await vi.advanceTimersByTimeAsync(5_000);
  await failed;
});

test('what is the same three times in a row has come to rest', async () => {
  let n = 0;
  const look = async () => Math.min(2, n++).toString();
  const rest = waitUntilStable('a cluster', look, { withinMs: 60_000 });
  await vi.advanceTimersByTimeAsync(5_000);
  expect(await rest).toBe('2');
  expect(n).toBe(5);
});
