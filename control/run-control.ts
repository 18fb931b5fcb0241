/** The loops of a control plane that stays in one process: delivering events, looking at what is due, sweeping what expired. */
import { abortScope, type LinkedAbort } from '#shared/async/abort-scope.ts';
import type { ControlDeps } from './model/deps.ts';
import type { Peerings } from './peerings/use-cases/peerings.ts';

type RunDeps = Pick<ControlDeps, 'store' | 'bus' | 'clock' | 'log'>;

export interface Runner {
  run(signal: AbortSignal): Promise<void>;
  /** Something is due at that time. */
  onDue(at: number): void;
}

/** Bounds the delay when another process planned a look. */
const longestIdleMs = 30_000;
const storeSweepMs = 10 * 60_000;
const retryMs = 1_000;

export function createRunner({ store, bus, clock, log }: RunDeps, peerings: () => Pick<Peerings, 'sweep'>): Runner {
  let sleepingUntil = Number.POSITIVE_INFINITY;
  let woken: LinkedAbort | undefined;
  let dueMeanwhile = false;

  function onDue(at: number): void {
    dueMeanwhile = true;
    if (at < sleepingUntil) woken?.abort();
  }

  async function sleepUntil(at: number, signal: AbortSignal): Promise<void> {
    const nap = abortScope(signal);
    woken = nap;
    sleepingUntil = at;
    await clock.sleep(Math.max(1, at - clock.now()), nap.signal).catch(() => undefined);
    nap.unlink();
    sleepingUntil = Number.POSITIVE_INFINITY;
  }

  async function sweepLoop(signal: AbortSignal): Promise<void> {
    let storeSweepAt = clock.now();
    while (!signal.aborted) {
      try {
        if (clock.now() >= storeSweepAt) {
          await store.sweep(signal);
          storeSweepAt = clock.now() + storeSweepMs;
        }
        dueMeanwhile = false;
        const { nextDueAt = Number.POSITIVE_INFINITY } = await peerings().sweep(signal);
        // What was planned while sweeping may be earlier than what the sweep saw.
        if (dueMeanwhile) continue;
        await sleepUntil(Math.min(nextDueAt, clock.now() + longestIdleMs), signal);
      } catch (error) {
        if (signal.aborted) return;
        log.error('sweep failed and will be tried again', error);
        await clock.sleep(retryMs, signal).catch(() => undefined);
      }
    }
  }

  return {
    onDue,
    async run(signal) {
      await Promise.all([sweepLoop(signal), bus?.run(signal)]);
    },
  };
}
