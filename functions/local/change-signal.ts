/** Wakes long polls when what they wait for was committed: in one process every commit goes through one store, and this listens in. */
import { changesOf } from '#control/events/changes.ts';
import type { Store } from '#control/ports/store.ts';
import type { Composition } from '#functions/runtime/composition.ts';
import { abortScope, abortsWith } from '#shared/async/abort-scope.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { Clock } from '#shared/ports/clock.ts';
import { type StartTurns, turnOf } from './start-turns.ts';

export interface ChangeSignal {
  /** The store with an ear on it. */
  readonly store: Store;
  readonly listen: Composition['listen'];
  /** Calls `hear` at each commit that changes what has one of these names, right after it, until the answer is called. `hear` must not throw. */
  readonly hear: (names: readonly string[], hear: () => void) => () => void;
  /** How many long polls wait right now. */
  readonly waiting: () => number;
}

/** Long polls of one tenant at a time. One more is answered at once with the state as it is. */
const maxWaitsOfTenant = 200;

export interface ListenOptions {
  readonly clock: Clock;
  /** What was woken goes on in turns with requests that begin: one commit can wake all waits of a tenant, and so does each second. */
  readonly turns: StartTurns;
  /** Makes every wait, running and future, reject, so that a draining server answers at once. */
  readonly stopping: AbortSignal;
  /** A wait beyond it is refused with `rate_limited`. */
  readonly maxOfTenant?: number;
}

export function listenIn(store: Store, options: ListenOptions): ChangeSignal {
  const { clock, turns, stopping, maxOfTenant = maxWaitsOfTenant } = options;
  /** Of each wait, by the names of what wakes it. */
  const ears = new Map<string, Set<() => void>>();
  const waits = new Map<string, number>();

  function add(name: string, hear: () => void): void {
    const others = ears.get(name) ?? new Set();
    ears.set(name, others.add(hear));
  }

  function remove(name: string, hear: () => void): void {
    const others = ears.get(name);
    others?.delete(hear);
    if (others?.size === 0) ears.delete(name);
  }

  function count(tenant: string, by: number): void {
    const sum = (waits.get(tenant) ?? 0) + by;
    if (sum === 0) waits.delete(tenant);
    else waits.set(tenant, sum);
  }

  return {
    waiting: () => [...waits.values()].reduce((sum, of) => sum + of, 0),
    store: {
      ...store,
      async transact(ops, events, signal) {
        await store.transact(ops, events, signal);
        if (ears.size === 0) return;
        for (const name of changesOf(ops, events)) for (const hear of ears.get(name) ?? []) hear();
      },
    },
    hear(names, hear) {
      for (const name of names) add(name, hear);
      return () => {
        for (const name of names) remove(name, hear);
      };
    },
    listen(tenant, names) {
      stopping.throwIfAborted();
      if ((waits.get(tenant) ?? 0) >= maxOfTenant) {
        throw new AppError('rate_limited', `the tenant waits ${maxOfTenant} times already, which is the limit`);
      }
      let heard = false;
      let wake = (): void => undefined;
      const hear = (): void => {
        heard = true;
        wake();
      };
      count(tenant, 1);
      for (const name of names) add(name, hear);
      return {
        async changed(withinMs, signal) {
          const nap = abortScope(stopping);
          wake = nap.abort;
          if (!heard) await clock.sleep(withinMs, abortsWith(signal, nap.signal)).catch(() => undefined);
          nap.abort();
          nap.unlink();
          signal.throwIfAborted();
          stopping.throwIfAborted();
          await turns.take(turnOf(tenant));
          const was = heard;
          heard = false;
          return was;
        },
        end() {
          for (const name of names) remove(name, hear);
          count(tenant, -1);
        },
      };
    },
  };
}
