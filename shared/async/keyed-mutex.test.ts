import { getEventListeners } from 'node:events';
import { expect, test } from 'vitest';
import { KeyedMutex } from './keyed-mutex.ts';

const flushed = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('B118: one task runs at a time for a provider, the next follows in order, and one that gives up waiting delays no other', async () => {
  const mutex = new KeyedMutex();
  const at: string[] = [];
  const holders = ['a', 'b', 'c'].map((name) => {
    const stop = new AbortController();
    const work = (signal: AbortSignal): Promise<void> => {
      at.push(name);
      return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
    };
    return { stop, ended: mutex.run('prov', stop.signal, work) };
  });
  const other = new AbortController();
  const elsewhere = mutex.run('other', other.signal, async () => void at.push('elsewhere'));
  await elsewhere;
  await flushed();
  expect(at).toEqual(['a', 'elsewhere']);
  holders[1]?.stop.abort();
  await holders[1]?.ended;
  expect(at).toEqual(['a', 'elsewhere']);
  holders[0]?.stop.abort();
  await holders[0]?.ended;
  await flushed();
  expect(at).toEqual(['a', 'elsewhere', 'c']);
  holders[2]?.stop.abort();
  await holders[2]?.ended;
});

test('the turn of one that fails goes to the next', async () => {
  const mutex = new KeyedMutex();
  const { signal } = new AbortController();
  const failing = mutex.run('prov', signal, async () => {
    throw new Error('broken');
  });
  await expect(failing).rejects.toThrow('broken');
  let worked = false;
  await mutex.run('prov', signal, async () => {
    worked = true;
  });
  expect(worked).toBe(true);
});

test('tasks that have ended leave no listener on a signal that lives on', async () => {
  const mutex = new KeyedMutex();
  const { signal } = new AbortController();
  for (let i = 0; i < 20; i++) await mutex.run('prov', signal, () => Promise.resolve());
  expect(getEventListeners(signal, 'abort')).toEqual([]);
});
