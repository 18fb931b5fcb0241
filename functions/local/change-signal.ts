/** Wakes long polls when something was committed: every commit wakes the bus, and this listens in. */

import type { EventBus } from '#control/ports/event-bus.ts';
import type { Composition } from '#functions/runtime/composition.ts';
import { abortScope, abortsWith } from '#shared/async/abort-scope.ts';
import type { Clock } from '#shared/ports/clock.ts';

export interface ChangeSignal {
  /** The bus with an ear on it. */
  readonly bus: EventBus;
  readonly untilChange: Composition['untilChange'];
  /** How many long polls wait right now. */
  readonly waiting: () => number;
}

/** `stopping` makes every wait, running and future, reject, so that a draining server answers at once. */
export function listenIn(bus: EventBus, clock: Clock, stopping: AbortSignal): ChangeSignal {
  let waiters = new Set<() => void>();
  return {
    waiting: () => waiters.size,
    bus: {
      wake() {
        bus.wake();
        const woken = waiters;
        waiters = new Set();
        for (const wake of woken) wake();
      },
      subscribe: (subscriber) => bus.subscribe(subscriber),
      run: (signal) => bus.run(signal),
    },
    async untilChange(_tenant, withinMs, signal) {
      signal.throwIfAborted();
      stopping.throwIfAborted();
      const stopped = abortScope(stopping);
      const over = abortsWith(signal, stopped.signal);
      let wake: () => void = () => undefined;
      const changed = new Promise<void>((resolve) => {
        wake = resolve;
        waiters.add(wake);
      });
      try {
        await Promise.race([changed, clock.sleep(withinMs, over)]);
      } finally {
        waiters.delete(wake);
        stopped.abort();
        stopped.unlink();
      }
    },
  };
}
