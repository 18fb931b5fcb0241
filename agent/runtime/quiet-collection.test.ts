/** When all objects are collected. */
import { expect, test } from 'vitest';
import { ManualClock } from '#shared/ports/clock.ts';
import { collectWhenQuiet } from './quiet-collection.ts';

const mebibyte = 1_048_576;
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Every 30 s: ms that the process has worked, and MiB that its heap has then. Gives what was collected in each. */
async function collections(looks: readonly (readonly [workedMs: number, heapMiB: number])[]): Promise<boolean[]> {
  const clock = new ManualClock();
  const end = new AbortController();
  let [worked, heap, collected] = [0, 0, false];
  const done = collectWhenQuiet(
    {
      clock,
      heapBytes: () => heap * mebibyte,
      workedMs: () => worked,
      collect: () => {
        collected = true;
        heap = 40;
      },
    },
    end.signal,
  );
  const all: boolean[] = [];
  for (const [workedMs, heapMiB] of looks) {
    await turn();
    [worked, heap, collected] = [worked + workedMs, heapMiB, false];
    clock.advance(30_000);
    await turn();
    all.push(collected);
  }
  end.abort();
  await done;
  return all;
}

test('a process that works is left alone, and collects once when it has become quiet', async () => {
  expect(
    await collections([
      [20_000, 56],
      [300, 56],
      [300, 41],
      [300, 47],
    ]),
  ).toEqual([false, true, false, false]);
});

test('it collects again when the heap has grown since', async () => {
  expect(
    await collections([
      [300, 50],
      [300, 47],
      [5_000, 60],
      [300, 48],
    ]),
  ).toEqual([true, false, false, true]);
});

test('it ends with its signal, without a last collection', async () => {
  let collected = 0;
  const deps = { clock: new ManualClock(), heapBytes: () => 1e9, workedMs: () => 0, collect: () => void collected++ };
  const end = new AbortController();
  const done = collectWhenQuiet(deps, end.signal);
  end.abort();
  await done;
  expect(collected).toBe(0);
});
