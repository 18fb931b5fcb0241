import { expect, test } from 'vitest';
import type { EventBus } from '#control/ports/event-bus.ts';
import { ManualClock } from '#shared/ports/clock.ts';
import { listenIn } from './change-signal.ts';

const bus: EventBus = { wake: () => undefined, subscribe: () => undefined, run: async () => undefined };
const never = new AbortController().signal;

function setUp(maxOfTenant?: number) {
  const stop = new AbortController();
  const heard: string[] = [];
  const signal = listenIn(bus, new ManualClock(), stop.signal, maxOfTenant);
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
