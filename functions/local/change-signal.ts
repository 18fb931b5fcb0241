/** Wakes the long polls of a tenant when something of it was committed: every commit wakes the bus and names its tenants, and this listens in. */

import type { EventBus } from '#control/ports/event-bus.ts';
import type { Composition } from '#functions/runtime/composition.ts';
import { abortScope, abortsWith } from '#shared/async/abort-scope.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { Clock } from '#shared/ports/clock.ts';
import { type StartTurns, turnOf } from './start-turns.ts';

export interface ChangeSignal {
  /** The bus with an ear on it. */
  readonly bus: EventBus;
  readonly untilChange: Composition['untilChange'];
  /** How many long polls wait right now. */
  readonly waiting: () => number;
}

/** Long polls of one tenant at a time. One more is answered at once with the state as it is. */
const maxWaitsOfTenant = 200;

export interface ListenOptions {
  readonly clock: Clock;
  /** What was woken goes on in turns with requests that begin: a commit, and each second, wakes all waits of a tenant. */
  readonly turns: StartTurns;
  /** Makes every wait, running and future, reject, so that a draining server answers at once. */
  readonly stopping: AbortSignal;
  /** A wait beyond it rejects likewise. */
  readonly maxOfTenant?: number;
}

export function listenIn(bus: EventBus, options: ListenOptions): ChangeSignal {
  const { clock, turns, stopping, maxOfTenant = maxWaitsOfTenant } = options;
  const waiters = new Map<string, Set<() => void>>();

  function wakeTenant(tenant: string): void {
    const woken = waiters.get(tenant);
    waiters.delete(tenant);
    for (const wake of woken ?? []) wake();
  }

  return {
    waiting: () => [...waiters.values()].reduce((sum, { size }) => sum + size, 0),
    bus: {
      wake(streams) {
        bus.wake(streams);
        for (const tenant of new Set(streams ?? waiters.keys())) wakeTenant(tenant);
      },
      subscribe: (subscriber) => bus.subscribe(subscriber),
      run: (signal) => bus.run(signal),
    },
    async untilChange(tenant, withinMs, signal) {
      signal.throwIfAborted();
      stopping.throwIfAborted();
      const others = waiters.get(tenant) ?? new Set();
      if (others.size >= maxOfTenant) {
        throw new AppError('rate_limited', `the tenant waits ${maxOfTenant} times already, which is the limit`);
      }
      waiters.set(tenant, others);
      const stopped = abortScope(stopping);
      const over = abortsWith(signal, stopped.signal);
      let wake: () => void = () => undefined;
      const changed = new Promise<boolean>((resolve) => {
        wake = () => resolve(true);
        others.add(wake);
      });
      try {
        const heard = await Promise.race([changed, clock.sleep(withinMs, over).then(() => false)]);
        await turns.take(turnOf(tenant));
        return heard;
      } finally {
        others.delete(wake);
        if (others.size === 0 && waiters.get(tenant) === others) waiters.delete(tenant);
        stopped.abort();
        stopped.unlink();
      }
    },
  };
}
