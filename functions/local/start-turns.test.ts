import { expect, test } from 'vitest';
import { createStartTurns, turnOfAddress } from './start-turns.ts';

const iteration = () => new Promise((resolve) => setImmediate(resolve));

/** Requests that each take `costMs` of the event loop, of which everything else takes `restMs` in each iteration, by a clock that only these move. */
function setUp(costMs: number, restMs = 0) {
  let now = 0;
  const turns = createStartTurns(() => now);
  const begun: string[] = [];
  const begin = async (owner: string): Promise<void> => {
    await turns.take(owner);
    begun.push(owner);
    now += costMs;
  };
  const rest = () => {
    now += restMs;
    if (begun.length < 100) setImmediate(rest);
  };
  if (restMs > 0) setImmediate(rest);
  return { begin, begun };
}

test('a request waits for one of each other owner, and for what this iteration had begun, however many those have', async () => {
  const { begin, begun } = setUp(1);
  const all = [...Array.from({ length: 200 }, () => begin('busy')), begin('polite'), begin('other')];
  await Promise.all(all);
  expect(begun).toHaveLength(202);
  // As many began before the others came.
  expect(begun.indexOf('polite')).toBeLessThanOrEqual(32 + 3);
  expect(begun.indexOf('other')).toBeLessThanOrEqual(32 + 3);
});

test('one that comes while many of another owner wait is among the next', async () => {
  const { begin, begun } = setUp(1);
  const all = Array.from({ length: 200 }, () => begin('busy'));
  for (let n = 0; n < 3; n += 1) await iteration();
  const before = begun.length;
  expect(before).toBeLessThan(100);
  all.push(begin('polite'));
  await Promise.all(all);
  expect(begun.indexOf('polite') - before).toBeLessThanOrEqual(2);
});

test('an iteration begins several, so that they share a commit, and no more than fit into its time', async () => {
  const perIteration = async (costMs: number, restMs?: number): Promise<number> => {
    const { begin, begun } = setUp(costMs, restMs);
    const all = Array.from({ length: 100 }, () => begin('busy'));
    const seen: number[] = [];
    while (begun.length < 100) {
      await iteration();
      seen.push(begun.length);
    }
    await Promise.all(all);
    return Math.max(...seen.slice(1).map((count, at) => count - (seen[at] ?? 0)));
  };
  expect(await perIteration(0.25)).toBe(16);
  expect(await perIteration(1)).toBe(4);
  expect(await perIteration(50)).toBe(1);
  // A slow disk: half of the time is for requests, up to a limit.
  expect(await perIteration(1, 10)).toBe(10);
  expect(await perIteration(1, 500)).toBe(25);
  expect(await perIteration(0, 10)).toBe(32);
});

test('a request that finds nothing else waits for nothing', async () => {
  const { begin, begun } = setUp(1);
  void begin('alone');
  await Promise.resolve();
  await Promise.resolve();
  await Promise.resolve();
  expect(begun).toEqual(['alone']);
  await iteration();
  await iteration();
  await begin('alone');
  expect(begun).toHaveLength(2);
});

test('one that comes from each address of its /64 waits as one owner, and another host is among the next', async () => {
  const { begin, begun } = setUp(1);
  const hosts = Array.from({ length: 200 }, (_, n) => `2001:db8:0:1::${(n + 1).toString(16)}`);
  const all = [...hosts, '2001:db8:0:2::1', '::ffff:192.0.2.1'].map((address) => begin(turnOfAddress(address)));
  await Promise.all(all);
  expect(begun.indexOf(turnOfAddress('2001:db8:0:2::1'))).toBeLessThanOrEqual(32 + 3);
  expect(begun.indexOf(turnOfAddress('192.0.2.1'))).toBeLessThanOrEqual(32 + 3);
});
