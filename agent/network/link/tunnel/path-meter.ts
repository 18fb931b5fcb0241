/** When to measure the path of a link, and the measuring itself: with pings padded to the size in question, which a Liqo peer answers, too. */
import { codeOf } from '#shared/errors/app-error.ts';
import type { Clock } from '#shared/ports/clock.ts';
import type { Log } from '#shared/ports/log.ts';
import { searchMtu } from './path-mtu.ts';

export interface PathSize {
  /** What the gateway is to have at most. */
  readonly configured: () => number;
  /** What devices have now. */
  readonly inEffect: () => number;
  /** Gives this node's devices of the link the configured size while it is measured; resolves once they have it. */
  readonly measuring: (on: boolean) => Promise<void>;
}

export interface PathMeterPorts {
  readonly clock: Clock;
  readonly log: Log;
  readonly size: PathSize;
  readonly ping: (timeStamp: string, bytes?: number) => void;
  readonly nextTimeStamp: () => string;
  /** Small pings are answered. */
  readonly isAlive: () => boolean;
}

export interface PathMeter {
  /** An answer; those to other pings are ignored. */
  answered(timeStamp: string, bytes: number): void;
  /** Starts what is due, in the background. Call often while the link is up. */
  check(smoothRttMs: number): void;
  mtu(): number | undefined;
}

/** IP and UDP headers of a ping. */
const headers = 28;
const triesPerSize = 3;
const leastWaitMs = 300;
const everyMs = 10 * 60_000;
/** How often a ping of the size in effect shows whether large packets still pass. */
const probeMs = 10_000;
/** After a search without result. */
const retryMs = 60_000;

export function createPathMeter(ports: PathMeterPorts, signal: AbortSignal): PathMeter {
  const { clock, log, size } = ports;
  const waiting = new Map<string, () => void>();
  let mtu: number | undefined;
  let configured: number | undefined;
  let measureAt = Number.NEGATIVE_INFINITY;
  let probeAt = Number.NEGATIVE_INFINITY;
  let busy = false;

  async function passes(bytes: number, waitMs: number): Promise<boolean> {
    for (let attempt = 0; attempt < triesPerSize && !signal.aborted; attempt++) {
      const timeStamp = ports.nextTimeStamp();
      let answered = false;
      const woken = new AbortController();
      waiting.set(timeStamp, () => {
        answered = true;
        woken.abort();
      });
      ports.ping(timeStamp, bytes - headers);
      await clock.sleep(waitMs, woken.signal).catch(() => undefined);
      waiting.delete(timeStamp);
      if (answered) return true;
    }
    return false;
  }

  async function measure(waitMs: number): Promise<void> {
    const most = size.configured();
    const raise = size.inEffect() < most;
    if (raise) await size.measuring(true);
    try {
      const found = await searchMtu(most, (bytes) => passes(bytes, waitMs));
      measureAt = clock.now() + (found === undefined ? retryMs : everyMs);
      configured = most;
      if (found !== undefined && found !== mtu) log.info('path measured', { mtu: found, configured: most });
      mtu = found ?? mtu;
    } finally {
      if (raise) await size.measuring(false);
    }
  }

  async function work(waitMs: number): Promise<void> {
    if (clock.now() >= measureAt || configured !== size.configured()) return measure(waitMs);
    if (clock.now() < probeAt) return;
    probeAt = clock.now() + probeMs;
    // Twice three lost large packets among answered small ones are no accident.
    for (let round = 0; round < 2; round++) if (await passes(size.inEffect(), waitMs)) return;
    if (ports.isAlive()) await measure(waitMs);
  }

  return {
    answered: (timeStamp) => waiting.get(timeStamp)?.(),
    check(smoothRttMs) {
      if (busy || !ports.isAlive()) return;
      busy = true;
      void work(Math.max(leastWaitMs, 4 * smoothRttMs))
        .catch((error) => log.warn('the path could not be measured', { code: codeOf(error) }))
        .finally(() => {
          busy = false;
        });
    },
    mtu: () => mtu,
  };
}
