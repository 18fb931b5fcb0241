import { expect, test } from 'vitest';
import type { EventBus } from '#control/ports/event-bus.ts';
import { ManualClock } from '#shared/ports/clock.ts';
import { listenIn } from './change-signal.ts';
import { createStartTurns, turnOf } from './start-turns.ts';

const bus: EventBus = { wake: () => undefined, subscribe: () => undefined, run: async () => undefined };
const never = new AbortController().signal;

function setUp(maxOfTenant?: number) {
  const stop = new AbortController();
  const heard: string[] = [];
  const signal = listenIn(bus, {
    clock: new ManualClock(),
    turns: createStartTurns(),
    stopping: stop.signal,
    ...(maxOfTenant !== undefined && { maxOfTenant }),
  });
  const wait = (tenant: string) =>
    signal.untilChange(tenant, 25_000, never).then(
      () => void heard.push(tenant),
      (error: Error) => void heard.push(error.message),
    );
  return { ...signal, wait, heard, stop };
}

test('a commit wakes the waits of its tenants and no others', async () => {
  const { bus: listening, wait, heard, waiting, stop } = setUp();
  const waits = [wait('acme'), wait('bolt'), wait('acme')];
  listening.wake(['acme', 'acme']);
  await Promise.all([waits[0], waits[2]]);
  expect([heard, waiting()]).toEqual([['acme', 'acme'], 1]);
  listening.wake();
  await waits[1];
  expect([heard.at(-1), waiting()]).toEqual(['bolt', 0]);
  stop.abort(new Error('over'));
});

test('a tenant waits so many times at most, and another tenant is not concerned', async () => {
  const { wait, heard, waiting, stop } = setUp(2);
  const held = [wait('acme'), wait('acme')];
  await wait('acme');
  expect(heard).toEqual([expect.stringContaining('2 times already')]);
  held.push(wait('bolt'));
  expect(waiting()).toBe(3);
  stop.abort(new Error('over'));
  await Promise.all(held);
  expect(waiting()).toBe(0);
});

test('what a commit wakes goes on when it is the turn of its tenant, for each wait once', async () => {
  const asked: { readonly owner: string; readonly go: () => void }[] = [];
  const turns = { take: (owner: string) => new Promise<void>((go) => asked.push({ owner, go })) };
  const { bus: listening, untilChange } = listenIn(bus, { clock: new ManualClock(), turns, stopping: never });
  let done = 0;
  const waits = ['acme', 'acme', 'bolt'].map((tenant) => untilChange(tenant, 25_000, never).then(() => (done += 1)));
  listening.wake(['acme', 'bolt']);
  await expect.poll(() => asked.map(({ owner }) => owner)).toEqual([turnOf('acme'), turnOf('acme'), turnOf('bolt')]);
  expect(done).toBe(0);
  for (const { go } of asked) go();
  await Promise.all(waits);
  expect(done).toBe(3);
});
