import { expect, test } from 'vitest';
import { createReadTurns } from './read-turns.ts';

const iteration = () => new Promise((resolve) => setImmediate(resolve));

test('a read waits for one read of each other partition, however many those have asked for', async () => {
  const turns = createReadTurns();
  const order: string[] = [];
  const read = async (partition: string) => {
    await turns.take(partition);
    order.push(partition);
  };
  const all = [...Array.from({ length: 50 }, () => read('busy')), read('quiet'), read('other')];
  await Promise.all(all);
  expect(order.indexOf('quiet')).toBeLessThanOrEqual(3);
  expect(order.indexOf('other')).toBeLessThanOrEqual(3);
  expect(order).toHaveLength(52);
});

test('each iteration of the event loop runs one read, so that requests that read little are answered in between', async () => {
  const turns = createReadTurns();
  let done = 0;
  for (let n = 0; n < 10; n += 1) void turns.take('busy').then(() => (done += 1));
  const seen: number[] = [];
  for (let n = 0; n < 12; n += 1) {
    await iteration();
    seen.push(done);
  }
  expect(Math.max(...seen.map((now, at) => now - (seen[at - 1] ?? 0)))).toBeLessThanOrEqual(2);
  expect(seen.at(-1)).toBe(10);
});

test('a read that finds no other one waits for nothing', async () => {
  const turns = createReadTurns();
  let done = false;
  void turns.take('alone').then(() => (done = true));
  await Promise.resolve();
  await Promise.resolve();
  expect(done).toBe(true);
  await iteration();
  await turns.take('alone');
});
