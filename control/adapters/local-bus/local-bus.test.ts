import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ManualClock } from '#shared/ports/clock.ts';
import { silentLog } from '#shared/ports/log.ts';
import type { Store } from '../../ports/store.ts';
import { createMemoryStore } from '../memory/memory-store.ts';
import { createLocalBus, type LocalBusOptions } from './local-bus.ts';

const never = new AbortController().signal;

function setUp(options: Partial<LocalBusOptions> = {}) {
  const clock = new ManualClock();
  const store = options.store ?? createMemoryStore({ clock });
  return { clock, store, bus: createLocalBus({ store, clock, log: silentLog, ...options }) };
}

const emit = (store: Store, clock: ManualClock, ...ids: string[]): Promise<void> =>
  store.transact(
    [],
    ids.map((id) => ({
      id,
      stream: 'acme',
      type: id.startsWith('x') ? 'other' : 'thing',
      subject: `thing/${id}`,
      at: clock.now(),
      data: {},
    })),
  );

/** Delivers, lets time pass, and delivers again until nothing is left to do. */
async function drain(bus: ReturnType<typeof createLocalBus>, clock: ManualClock): Promise<void> {
  for (let quiet = 0; quiet < 30; quiet += 1) {
    if (await bus.deliverDue(never)) quiet = 0;
    clock.advance(60_000);
  }
}

describe('the local bus', () => {
  test('brings each subscriber what it asked for, in order, once', async () => {
    const { bus, store, clock } = setUp();
    const seen: string[] = [];
    const all: string[] = [];
    bus.subscribe({ name: 'things', types: ['thing'], handle: async (event) => void seen.push(event.id) });
    bus.subscribe({ name: 'all', handle: async (event) => void all.push(event.id) });
    await emit(store, clock, 'a', 'x1', 'b');
    await drain(bus, clock);
    expect({ seen, all }).toEqual({ seen: ['a', 'b'], all: ['a', 'x1', 'b'] });
  });

  test('goes on after a restart where it was', async () => {
    const { bus, store, clock } = setUp();
    const seen: string[] = [];
    const subscriber = { name: 's', handle: async (event: { id: string }) => void seen.push(event.id) };
    bus.subscribe(subscriber);
    await emit(store, clock, 'a');
    await drain(bus, clock);
    const next = createLocalBus({ store, clock, log: silentLog });
    next.subscribe(subscriber);
    await emit(store, clock, 'b');
    await drain(next, clock);
    expect(seen).toEqual(['a', 'b']);
  });

  test('tries again later what failed, without holding up the rest', async () => {
    const { bus, store, clock } = setUp();
    const seen: string[] = [];
    let failures = 3;
    bus.subscribe({
      name: 's',
      handle: async ({ id }) => {
        if (id === 'a' && failures > 0) {
          failures -= 1;
          throw new Error('not now');
        }
        seen.push(id);
      },
    });
    await emit(store, clock, 'a', 'b');
    await bus.deliverDue(never);
    expect(seen).toEqual(['b']);
    clock.advance(999);
    await bus.deliverDue(never);
    expect(failures).toBe(2);
    await drain(bus, clock);
    expect(seen).toEqual(['b', 'a']);
  });

  test('puts aside what never succeeds, with the reason', async () => {
    const { bus, store, clock } = setUp({ maxAttempts: 3 });
    let attempts = 0;
    bus.subscribe({
      name: 's',
      handle: async () => {
        attempts += 1;
        throw new Error('poison');
      },
    });
    await emit(store, clock, 'a');
    await drain(bus, clock);
    expect(attempts).toBe(3);
    expect(await bus.deadLetters('s')).toMatchObject([{ event: { id: 'a' }, attempts: 3, reason: 'poison' }]);
  });

  test('delivers at least once, under duplicates, reordering and crashes', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 0, max: 99 }), { minLength: 40, maxLength: 200 }),
        fc.integer({ min: 1, max: 30 }),
        async (dice, count) => {
          let at = 0;
          const random = () => {
            at += 1;
            // Fair after the generated part, so that every delivery succeeds in the end.
            return at < dice.length ? (dice[at] ?? 0) / 100 : 0.9;
          };
          const mischief = { random, shuffle: 0.5, duplicate: 0.3, delay: 0.3, delayMs: 5_000, drop: 0.3 };
          const { bus, store, clock } = setUp({ mischief, maxAttempts: 1_000 });
          const seen = new Set<string>();
          bus.subscribe({
            name: 's',
            handle: async ({ id }) => {
              if (random() < 0.2) throw new Error('failed');
              seen.add(id);
            },
          });
          const ids = Array.from({ length: count }, (_, i) => `e${i}`);
          for (const id of ids) await emit(store, clock, id);
          await drain(bus, clock);
          expect([...seen].sort()).toEqual(ids.sort());
          expect(await bus.deadLetters('s')).toEqual([]);
        },
      ),
      { numRuns: 60 },
    );
  });

  test('while it runs, delivers when woken and stops with its signal', async () => {
    const { bus, store, clock } = setUp();
    const stop = new AbortController();
    let arrived: (id: string) => void = () => undefined;
    const arrival = new Promise<string>((resolve) => {
      arrived = resolve;
    });
    bus.subscribe({ name: 's', handle: async ({ id }) => arrived(id) });
    const running = bus.run(stop.signal);
    while (clock.sleeping === 0) await new Promise((resolve) => setImmediate(resolve));
    await emit(store, clock, 'a');
    bus.wake();
    expect(await arrival).toBe('a');
    stop.abort();
    await running;
  });
});
