import { expect, test } from 'vitest';
import { coalesced } from './single-flight.ts';

interface Pending {
  readonly key: string;
  readonly resolve: (value: number) => void;
  readonly reject: (error: Error) => void;
}
function held() {
  const pending: Pending[] = [];
  const read = coalesced<number>(
    (key) => new Promise((resolve, reject) => void pending.push({ key, resolve, reject })),
  );
  return { pending, read };
}
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('a thousand questions at once are two reads: the one under way, and one that begins after they were asked', async () => {
  const { pending, read } = held();
  const first = read('a');
  const others = Array.from({ length: 1_000 }, () => read('a'));
  expect(pending).toHaveLength(1);
  pending[0]?.resolve(1);
  expect(await first).toBe(1);
  await turn();
  expect(pending).toHaveLength(2);
  pending[1]?.resolve(2);
  expect(new Set(await Promise.all(others))).toEqual(new Set([2]));
  await turn();
  void read('a');
  expect(pending).toHaveLength(3);
});

test('keys do not wait for each other', () => {
  const { pending, read } = held();
  void read('a');
  void read('b');
  expect(pending.map(({ key }) => key)).toEqual(['a', 'b']);
});

test('a failed read fails for its waiters only, and the next read is made all the same', async () => {
  const { pending, read } = held();
  const first = read('a');
  const second = read('a');
  pending[0]?.reject(new Error('away'));
  await expect(first).rejects.toThrow('away');
  await turn();
  pending[1]?.resolve(2);
  expect(await second).toBe(2);
});
