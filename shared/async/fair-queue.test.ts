import { expect, test } from 'vitest';
import { FairQueue } from './fair-queue.ts';

const served = (line: FairQueue<string>): string[] => {
  const all: string[] = [];
  for (let [next] = line; next !== undefined; [next] = line) {
    all.push(next);
    line.delete(next);
  }
  return all;
};

test('everybody has his turn, each in the order of coming', () => {
  const line = new FairQueue<string>(10);
  for (const thing of ['a1', 'a2', 'a3', 'b1', 'c1', 'b2', 'a1']) line.add(thing.slice(0, 1), thing);
  expect(line.size).toBe(6);
  expect(served(line)).toEqual(['a1', 'b1', 'c1', 'a2', 'b2', 'a3']);
  expect(line.size).toBe(0);
});

test('when the queue is full, only the owner with the longest backlog loses items, the last ones first', () => {
  const line = new FairQueue<string>(4);
  for (const thing of ['a1', 'a2', 'a3', 'a4']) expect(line.offer('a', thing)).toBe(true);
  expect(line.offer('a', 'a5')).toBe(false);
  expect(line.offer('b', 'b1')).toBe(true);
  expect(line.offer('b', 'b2')).toBe(true);
  expect(line.offer('b', 'b3')).toBe(false);
  expect(line.offer('c', 'c1')).toBe(true);
  expect(line.size).toBe(4);
  expect([...line]).toHaveLength(4);
  expect([...line].filter((thing) => thing === 'c1')).toEqual(['c1']);
});
