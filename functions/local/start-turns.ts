/**
 * Fair scheduling of requests: what fifty requests of one tenant that came together need would hold the event loop for as long as all of them take. An
 * iteration of the event loop begins requests for a few milliseconds, and what is left waits for the next ones, in a round robin over the
 * tenants. Several begin in one iteration, so that what they write shares a commit.
 */
import { performance } from 'node:perf_hooks';
import { FairQueue } from '#shared/async/fair-queue.ts';
import { limitKey } from '#shared/domain/socket-address.ts';

export interface StartTurns {
  /** Resolves when it is the turn of this owner: at once when nothing waits and this iteration has time left. */
  take(owner: string): Promise<void>;
}

/** The owner of what is known to be of a tenant. */
export const turnOf = (tenant: string): string => `tenant ${tenant}`;
/** Of what is not known to be of a tenant. One host has a whole /64 of IPv6 addresses. */
export const turnOfAddress = (address: string): string => `address ${limitKey(address)}`;

/**
 * Milliseconds of one iteration, the last request begun in it not counted: as long as the rest of the last iteration took, within these bounds. Where
 * the disk is slow an iteration is mostly the commit, and few requests in each would leave most of the time to it.
 */
const sliceMs = { least: 4, most: 25 };
/** Also of pipelined requests, which all come before the first of them has taken any time. */
const mostInSlice = 32;

export function createStartTurns(now: () => number = () => performance.now()): StartTurns {
  const waiting = new FairQueue<() => void>();
  let slice: { readonly startedAt: number; readonly ms: number; begun: number } | undefined;
  /** When the slice before ended, if requests were left for this one. */
  let leftAt: number | undefined;

  /** Whether one more may begin in this iteration, in which case it is counted. */
  function mayBegin(): boolean {
    const at = now();
    slice ??= { startedAt: at, ms: lengthAt(at), begun: 0 };
    if (slice.begun >= mostInSlice || at - slice.startedAt >= slice.ms) return false;
    slice.begun += 1;
    return true;
  }

  const lengthAt = (at: number): number =>
    Math.min(sliceMs.most, Math.max(sliceMs.least, leftAt === undefined ? 0 : at - leftAt));

  function beginOne(): void {
    const start = waiting.first();
    if (start === undefined || !mayBegin()) return;
    waiting.delete(start);
    start();
  }

  function endSlice(): void {
    slice = undefined;
    leftAt = waiting.size === 0 ? undefined : now();
    if (leftAt === undefined) return;
    // One for each, since what a request does until it waits for something runs before the next of these.
    for (let n = Math.min(mostInSlice, waiting.size); n > 0; n -= 1) setImmediate(beginOne);
    setImmediate(endSlice);
  }

  return {
    async take(owner) {
      if (slice === undefined && waiting.size === 0) setImmediate(endSlice);
      if (waiting.size === 0 && mayBegin()) return;
      return new Promise<void>((resolve) => waiting.add(owner, resolve));
    },
  };
}
