import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ManualClock } from '#shared/ports/clock.ts';
import { KeyQueue } from './work-queue.ts';

/** Lets everything that is ready to run do so. */
const settle = () => new Promise((resolve) => setImmediate(resolve));
const create = () => {
  const clock = new ManualClock();
  return { clock, queue: new KeyQueue({ clock, random: () => 1 }) };
};

describe('a key', () => {
  test('that is added many times waits once, in the order of its first addition', async () => {
    const { queue } = create();
    for (const key of ['a', 'b', 'a', 'a', 'b']) queue.add(key);
    expect(queue.depth).toBe(2);
    expect([await queue.take(), await queue.take()]).toEqual(['a', 'b']);
    expect(queue.depth).toBe(0);
  });

  test('is taken in the turn of its owner, so that an owner of thousands does not make others wait for all of them', async () => {
    const ownerOf = (key: string): string => key.split('/')[0] ?? '';
    const queue = new KeyQueue({ clock: new ManualClock(), ownerOf });
    for (let i = 0; i < 5; i++) queue.add(`mad/${i}`);
    queue.add('one/a');
    queue.add('mad/0');
    queue.add('two/a');
    queue.add('one/b');
    const taken: (string | undefined)[] = [];
    while (queue.depth > 0) taken.push(await queue.take());
    expect(taken).toEqual(['mad/0', 'one/a', 'two/a', 'mad/1', 'one/b', 'mad/2', 'mad/3', 'mad/4']);
  });

  test('that has another owner by now waits only once', async () => {
    let owner = 'before';
    const queue = new KeyQueue({ clock: new ManualClock(), ownerOf: () => owner });
    queue.add('a');
    owner = 'after';
    queue.add('a');
    expect(queue.depth).toBe(1);
    expect(await queue.take()).toBe('a');
    expect(queue.depth).toBe(0);
  });

  test('that is added while a worker has it comes again after that worker is done', async () => {
    const { queue } = create();
    queue.add('a');
    await queue.take();
    queue.add('a');
    queue.add('a');
    let second: string | undefined;
    void queue.take().then((key) => {
      second = key;
    });
    await settle();
    expect(second).toBeUndefined();
    queue.done('a');
    await settle();
    expect(second).toBe('a');
  });

  test('that is delayed twice comes at the earlier time, once', async () => {
    const { clock, queue } = create();
    queue.addAfter('a', 1_000);
    queue.addAfter('a', 100);
    queue.addAfter('a', 500);
    clock.advance(99);
    await settle();
    expect(queue.depth).toBe(0);
    clock.advance(1);
    await settle();
    expect(queue.depth).toBe(1);
    await queue.take();
    queue.done('a');
    clock.advance(5_000);
    await settle();
    expect(queue.depth).toBe(0);
  });

  test('whose pass begins for another reason does not come again for its delay', async () => {
    const { clock, queue } = create();
    queue.addAfter('a', 100);
    queue.add('a');
    await queue.take();
    queue.done('a');
    clock.advance(200);
    await settle();
    expect(queue.depth).toBe(0);
  });

  test('that fails waits 50 ms, doubling to a minute, and from the start again once it succeeded', () => {
    const { queue } = create();
    const delays = Array.from({ length: 14 }, () => queue.addAfterFailure('a'));
    expect(delays.slice(0, 4)).toEqual([50, 100, 200, 400]);
    expect(delays.at(-1)).toBe(60_000);
    queue.forgive('a');
    expect(queue.addAfterFailure('a')).toBe(50);
  });
});

test('a closed queue sends its takers home and takes nothing more', async () => {
  const { clock, queue } = create();
  const waiting = queue.take();
  queue.addAfter('late', 10);
  queue.close();
  expect(await waiting).toBeUndefined();
  queue.add('a');
  clock.advance(100);
  await settle();
  expect(await queue.take()).toBeUndefined();
  expect(clock.sleeping).toBe(0);
});

const key = fc.constantFrom('a', 'b', 'c', 'd');
const step = fc.oneof(
  fc.record({ do: fc.constant('add' as const), key }),
  fc.record({ do: fc.constant('addAfter' as const), key, ms: fc.integer({ min: 0, max: 500 }) }),
  fc.record({ do: fc.constant('advance' as const), ms: fc.integer({ min: 1, max: 400 }) }),
  fc.record({ do: fc.constant('finish' as const), nth: fc.nat(5), fails: fc.boolean() }),
);

test('no key is ever with two workers, and none that was added is lost', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), fc.integer({ min: 1, max: 4 }), async (steps, workers) => {
      const { clock, queue } = create();
      const running: string[] = [];
      /** Keys that were added and for which no pass has begun since. */
      const owed = new Set<string>();
      const take = () =>
        void queue.take().then((taken) => {
          if (taken === undefined) return;
          expect(running).not.toContain(taken);
          running.push(taken);
          owed.delete(taken);
        });
      const finish = (nth: number, fails: boolean) => {
        const [done] = running.splice(nth % Math.max(1, running.length), 1);
        if (done === undefined) return;
        if (fails) {
          queue.addAfterFailure(done);
          owed.add(done);
        } else queue.forgive(done);
        queue.done(done);
        take();
      };
      for (let i = 0; i < workers; i++) take();
      for (const next of steps) {
        if (next.do === 'advance') clock.advance(next.ms);
        else if (next.do === 'finish') finish(next.nth, next.fails);
        else {
          owed.add(next.key);
          if (next.do === 'add') queue.add(next.key);
          else queue.addAfter(next.key, next.ms);
        }
        await settle();
        expect(new Set(running).size).toBe(running.length);
        expect(running.length).toBeLessThanOrEqual(workers);
      }
      // From here on everything succeeds: all owed keys must come.
      for (let i = 0; i < 40 && (owed.size > 0 || running.length > 0); i++) {
        while (running.length > 0) {
          finish(0, false);
          await settle();
        }
        clock.advance(60_000);
        await settle();
      }
      expect([...owed]).toEqual([]);
      expect(queue.depth).toBe(0);
      queue.close();
    }),
    { numRuns: 300 },
  );
});
