/** Keeps one network namespace as it should be: one pass for a burst of changes, again on drift, again after a failure; never in the way of others. */
import { codeOf } from '#shared/errors/app-error.ts';
import type { Clock } from '#shared/ports/clock.ts';
import type { Log } from '#shared/ports/log.ts';
import type { KernelState, Refusal } from '../host/kernel-state.ts';
import type { Applied, Namespace } from '../host/namespace.ts';
import { backoffMs } from '../kube/backoff.ts';
import { linkedAbort } from '../kube/linked-abort.ts';

export interface ProgrammerDeps {
  readonly namespace: Pick<Namespace, 'apply' | 'watchDrift'>;
  readonly clock: Clock;
  readonly log: Log;
  /** What should be, as of now. Undefined: leave everything as it is. */
  readonly want: () => KernelState | undefined;
  /** After each pass. `failed` are configurations of users; `error` is ours. */
  readonly onPass?: (outcome: { readonly failed: readonly Refusal[]; readonly error?: unknown }) => void;
  readonly driftMs?: number;
}

export interface Programmer {
  /** Something changed; the next pass follows at once, or after the one that is running. */
  wake(): void;
  /** Resolves after a pass that began after this call succeeded; rejects with the signal's reason. */
  applied(signal: AbortSignal): Promise<void>;
  /** Returns when the signal aborts and the running pass has ended. */
  run(signal: AbortSignal): Promise<void>;
}

/** Changes that come together are one pass. */
const settleMs = 15;
const awaitTunnelMs = 200;
/** Even without a change: whatever a watch has missed is found by then. */
const resyncMs = 60_000;

export function createProgrammer({ namespace, clock, log, want, onPass, driftMs = 2_000 }: ProgrammerDeps): Programmer {
  let dirty = true;
  let wakeUp: (() => void) | undefined;
  let waiters: { readonly resolve: () => void; serves: boolean }[] = [];

  function wake(): void {
    dirty = true;
    wakeUp?.();
  }

  /** Milliseconds until the next pass unless something changes. */
  async function pass(failures: number): Promise<{ readonly nextMs: number; readonly failures: number }> {
    for (const waiter of waiters) waiter.serves = true;
    try {
      const state = want();
      const applied: Applied | undefined = state === undefined ? undefined : await namespace.apply(state);
      if (applied !== undefined && applied.wrote.length > 0) log.debug('applied', { wrote: applied.wrote });
      onPass?.({ failed: applied?.failed ?? [] });
      for (const { serves, resolve } of waiters) if (serves) resolve();
      waiters = waiters.filter(({ serves }) => !serves);
      return { nextMs: applied?.awaitsTunnel ? awaitTunnelMs : resyncMs, failures: 0 };
    } catch (error) {
      log.warn('could not program the network', { code: codeOf(error), why: (error as Error).message });
      onPass?.({ failed: [], error });
      return {
        nextMs: backoffMs(failures + 1, { baseMs: 200, maxMs: 5_000, random: Math.random }),
        failures: failures + 1,
      };
    }
  }

  return {
    wake,
    applied(signal) {
      return new Promise((resolve, reject) => {
        const refuse = (): void => reject(signal.reason);
        if (signal.aborted) return refuse();
        signal.addEventListener('abort', refuse, { once: true });
        waiters.push({
          serves: false,
          resolve: () => {
            signal.removeEventListener('abort', refuse);
            resolve();
          },
        });
        wake();
      });
    },
    async run(signal) {
      const drift = namespace.watchDrift(
        () => {
          log.info('somebody else changed the network; repairing it');
          wake();
        },
        { everyMs: driftMs },
      );
      let failures = 0;
      try {
        while (!signal.aborted) {
          dirty = false;
          const outcome = await pass(failures);
          failures = outcome.failures;
          const nap = linkedAbort(signal);
          wakeUp = () => nap.abort();
          if (!dirty) await clock.sleep(outcome.nextMs, nap.signal).catch(() => undefined);
          nap.unlink();
          wakeUp = undefined;
          if (!signal.aborted) await clock.sleep(settleMs, signal).catch(() => undefined);
        }
      } finally {
        drift.stop();
      }
    },
  };
}
