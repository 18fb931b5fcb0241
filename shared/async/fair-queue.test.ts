import { expect, test } from 'vitest';
import { FairQueue } from './fair-queue.ts';

const served = (queue: FairQueue<string>): string[] => {
  const all: string[] = [];
  for (let [next] = queue; next !== undefined; [next] = queue) {
    all.push(next);
    queue.delete(next);
  }
  return all;
};

test('owners take turns, each in order of arrival', () => {
  const queue = new FairQueue<string>(10);
  for (const thing of ['a1', 'a2', 'a3', 'b1', 'c1', 'b2', 'a1']) queue.add(thing.slice(0, 1), thing);
  expect(queue.size).toBe(6);
  expect(served(queue)).toEqual(['a1', 'b1', 'c1', 'a2', 'b2', 'a3']);
  expect(queue.size).toBe(0);
});

test('a full queue drops the newest item of the longest owner, and of no other', () => {
  const queue = new FairQueue<string>(4);
  for (const thing of ['a1', 'a2', 'a3', 'a4']) expect(queue.offer('a', thing)).toBe(true);
  expect(queue.offer('a', 'a5')).toBe(false);
  expect(queue.offer('b', 'b1')).toBe(true);
  expect(queue.offer('b', 'b2')).toBe(true);
  expect(queue.offer('b', 'b3')).toBe(false);
  expect(queue.offer('c', 'c1')).toBe(true);
  expect(queue.size).toBe(4);
  expect([...queue]).toHaveLength(4);
  expect([...queue].filter((thing) => thing === 'c1')).toEqual(['c1']);
});
