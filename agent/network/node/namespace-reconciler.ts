/**
 * Keeps one network namespace as its plan says: one pass for a burst of changes, again on drift, again after a failure. It never blocks other
 * reconcilers.
 */
import { abortScope } from '#shared/async/abort-scope.ts';
import { backoffMs, type Random } from '#shared/async/backoff.ts';
import { codeOf } from '#shared/errors/app-error.ts';
import type { Clock } from '#shared/ports/clock.ts';
import type { Log } from '#shared/ports/log.ts';
import type { KernelState, Refusal } from '../kernel/kernel-state.ts';
import type { Applied, Namespace } from '../kernel/namespace.ts';

export interface NamespaceReconcilerDeps {
  readonly namespace: Pick<Namespace, 'apply' | 'watchDrift'>;
  readonly clock: Clock;
  readonly log: Log;
  /** What should be, as of now. Undefined: leave everything as it is. */
  readonly want: () => KernelState | undefined;
  /** After each pass. `failed` are configurations of users; `error` is ours. */
  readonly onPass?: (outcome: { readonly failed: readonly Refusal[]; readonly error?: unknown }) => void;
  readonly driftMs?: number;
  readonly random?: Random;
}

export interface NamespaceReconciler {
  /** Something changed; the next pass follows at once, or after the one that is running. */
  wake(): void;
  /** One of very many changes: a pass follows at once after a quiet time, and otherwise at a distance from the last one. */
  wakeCalmly(): void;
  /** Resolves after a pass that began after this call succeeded; rejects with the signal's reason. */
  applied(signal: AbortSignal): Promise<void>;
  /** Returns when the signal aborts and the running pass has ended. */
  run(signal: AbortSignal): Promise<void>;
}

/** Abort reason without a stack, since no code reads it. */
const enough = Object.freeze({ name: 'AbortError' });
/** Changes that come together are one pass. */
const settleMs = 15;
const awaitTunnelMs = 200;
/** Pause between passes for changes that come by the thousand: this many times the duration of the last pass, so that reconciling never dominates. */
const calm = { times: 5, leastMs: 1_000, mostMs: 2_000 } as const;
/** Drift is to be repaired within 5 s. Parts without a netlink monitor are polled, and each poll costs one or two processes. */
const usualDriftMs = 2_500;
/** A pass without any change repairs what a watch has missed. */
const resyncMs = 60_000;

export function createNamespaceReconciler({
  namespace,
  clock,
  log,
  want,
  onPass,
  driftMs = usualDriftMs,
  random = Math.random,
}: NamespaceReconcilerDeps): NamespaceReconciler {
  let dirty = true;
  let dirtyCalmly = false;
  let nap: { readonly calm: boolean; readonly end: () => void } | undefined;
  let without = '';
  let waiters: { readonly resolve: () => void; serves: boolean }[] = [];

  function wake(): void {
    dirty = true;
    nap?.end();
  }

  async function rest(ms: number, calm: boolean, signal: AbortSignal): Promise<void> {
    const life = abortScope(signal);
    nap = { calm, end: () => life.abort(enough) };
    await clock.sleep(ms, life.signal).catch(() => undefined);
    nap = undefined;
    life.unlink();
  }

  /** Once, until it is something else. */
  function logMissing(now: readonly string[]): void {
    if (now.length > 0 && now.join() !== without) log.info('packets take a slower way here', { why: now });
    without = now.join();
  }

  /** The plan that the last pass applied, unless it failed or waits for something; and until when it is assumed to be in effect. */
  let settledAs: { readonly text: string; readonly until: number } | undefined;

  /** Most pod changes do not affect this namespace, and a pass costs processes: for such changes the plan is compared first. */
  function isSettled(calmly: boolean): boolean {
    if (!calmly || settledAs === undefined || clock.now() >= settledAs.until) return false;
    const state = want();
    return state !== undefined && JSON.stringify(state) === settledAs.text;
  }

  /** Milliseconds until the next pass unless something changes. */
  async function pass(failures: number): Promise<{ readonly nextMs: number; readonly failures: number }> {
    for (const waiter of waiters) waiter.serves = true;
    settledAs = undefined;
    try {
      const state = want();
      const applied: Applied | undefined = state === undefined ? undefined : await namespace.apply(state);
      if (applied !== undefined && applied.wrote.length > 0) log.debug('applied', { wrote: applied.wrote });
      logMissing(applied?.without ?? []);
      onPass?.({ failed: applied?.failed ?? [] });
      for (const { serves, resolve } of waiters) if (serves) resolve();
      waiters = waiters.filter(({ serves }) => !serves);
      if (state !== undefined && applied?.awaitsTunnel === false && applied.without.length === 0)
        settledAs = { text: JSON.stringify(state), until: clock.now() + resyncMs };
      return { nextMs: applied?.awaitsTunnel ? awaitTunnelMs : resyncMs, failures: 0 };
    } catch (error) {
      log.warn('could not program the network', { code: codeOf(error), why: (error as Error).message });
      onPass?.({ failed: [], error });
      return {
        nextMs: backoffMs(failures + 1, { baseMs: 200, maxMs: 5_000, random }),
        failures: failures + 1,
      };
    }
  }

  return {
    wake,
    wakeCalmly() {
      dirtyCalmly = true;
      if (nap?.calm === false) nap.end();
    },
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
          log.info('another program changed the network; repairing it');
          wake();
        },
        { everyMs: driftMs },
      );
      let failures = 0;
      try {
        while (!signal.aborted) {
          const calmly = dirtyCalmly && !dirty;
          dirty = false;
          dirtyCalmly = false;
          const begunAt = clock.now();
          const left = (settledAs?.until ?? 0) - begunAt;
          const outcome = isSettled(calmly) ? { nextMs: left, failures } : await pass(failures);
          failures = outcome.failures;
          const endedAt = clock.now();
          const calmAt = endedAt + Math.min(calm.mostMs, Math.max(calm.leastMs, calm.times * (endedAt - begunAt)));
          if (!dirty && !dirtyCalmly) await rest(outcome.nextMs, false, signal);
          const calmMs = Math.min(calmAt, endedAt + outcome.nextMs) - clock.now();
          if (!dirty && dirtyCalmly && calmMs > 0) await rest(calmMs, true, signal);
          if (!signal.aborted) await clock.sleep(settleMs, signal).catch(() => undefined);
        }
      } finally {
        drift.stop();
      }
    },
  };
}
