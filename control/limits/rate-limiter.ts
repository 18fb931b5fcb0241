/**
 * How many requests a tenant may send, counted without a hot item: a sliding window of one minute that each process keeps in memory and
 * shares in blocks. A process writes its own item per (tenant, kind, minute) - it is the only writer, so there are no conflicts - and only after
 * each further fiftieth of the limit; with the same visit it reads what the others wrote. Hence:
 *
 * - a tenant below a fiftieth of its limit per process costs no read and no write at all (an idle cluster stays free);
 * - a tenant at its limit causes about 50 small writes and queries a minute, independent of the limit;
 * - `processes x limit / 50` requests may pass beyond the limit in one minute, `processes` being those that served this tenant in it. In local
 *   mode there is one process, and the count is exact.
 *
 * A token bucket per process alone would allow `processes x limit`; one shared counter would write at every request and throttle its own
 * partition. When the store fails, what is known counts: a limit must not become an outage.
 */
import { AppError } from '#shared/errors/app-error.ts';
import type { Clock } from '#shared/ports/clock.ts';
import type { Ids } from '#shared/ports/ids.ts';
import type { Log } from '#shared/ports/log.ts';
import { type Store, withPrefix } from '../ports/store.ts';
import { key, partition, sortableTime } from '../store/keys.ts';
import type { Standing } from './limits.ts';

export type RateKind = 'requests' | 'events';

export interface RateLimiter {
  /** Counts one. Throws `rate_limited` with `retryAfterSeconds` and the standing in its detail. */
  admit(tenant: string, kind: RateKind, limit: number, signal?: AbortSignal): Promise<Standing>;
}

interface Window {
  readonly minute: number;
  /** What was counted in the minute before, as far as known here. */
  readonly before: number;
  own: number;
  /** Of `own`, what the others can see. */
  written: number;
  version: number;
  others: number;
  sharing: boolean;
}

const windowMs = 60_000;
/** Blocks that a limit is shared in. */
const blocks = 50;
/** Tenants remembered at once; idle ones are forgotten first. */
const maxWindows = 50_000;

export function createRateLimiter({
  store,
  clock,
  ids,
  log,
}: {
  readonly store: Store;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
}): RateLimiter {
  const windows = new Map<string, Window>();
  let self: string | undefined;

  function windowOf(tenant: string, kind: RateKind, minute: number): Window {
    const name = `${kind}/${tenant}`;
    const last = windows.get(name);
    if (last?.minute === minute) return last;
    const before = last?.minute === minute - 1 ? last.own + last.others : 0;
    const fresh: Window = { minute, before, own: 0, written: 0, version: 0, others: 0, sharing: false };
    // Re-inserted, so that the map's order is that of use.
    windows.delete(name);
    windows.set(name, fresh);
    if (windows.size > maxWindows) windows.delete(windows.keys().next().value ?? '');
    return fresh;
  }

  async function share(tenant: string, kind: RateKind, window: Window, signal?: AbortSignal): Promise<void> {
    self ??= ids.next('pr');
    window.sharing = true;
    try {
      const at = key.rate(tenant, kind, window.minute, self);
      const value = { count: window.own };
      const expiresAt = (window.minute + 3) * windowMs;
      await store.transact(
        [
          window.version === 0
            ? { op: 'put', ...at, value, expiresAt }
            : { op: 'update', ...at, value, expiresAt, ifVersion: window.version },
        ],
        [],
        signal,
      );
      window.version += 1;
      window.written = value.count;
      const { items } = await store.query<{ readonly count: number }>(
        { partition: partition.rate(tenant), ...withPrefix(`${kind}/${sortableTime(window.minute)}/`), limit: 1_000 },
        signal,
      );
      window.others = items.reduce((sum, item) => (item.sk === at.sk ? sum : sum + item.value.count), 0);
    } catch (error) {
      signal?.throwIfAborted();
      log.warn('request counts could not be shared', { tenant, reason: (error as Error).message });
    } finally {
      window.sharing = false;
    }
  }

  return {
    async admit(tenant, kind, limit, signal) {
      const now = clock.now();
      const minute = Math.floor(now / windowMs);
      const window = windowOf(tenant, kind, minute);
      // In whole milliseconds: a share of a minute as a fraction is now and then a little too much, and would count one more.
      const leftMs = windowMs - (now - minute * windowMs);
      const resetSeconds = Math.max(1, Math.ceil(leftMs / 1_000));
      const current = window.own + window.others;
      const used = Math.ceil((window.before * leftMs) / windowMs) + current;
      if (used >= limit) {
        const retryAfterSeconds = waitOf({ limit, current, before: window.before, leftMs, resetSeconds });
        throw new AppError(
          'rate_limited',
          `the tenant sent ${limit} ${kind} within a minute, which is its limit; wait ${retryAfterSeconds} s`,
          { detail: { limit, remaining: 0, resetSeconds, retryAfterSeconds } },
        );
      }
      window.own += 1;
      if (window.own - window.written >= Math.max(1, Math.ceil(limit / blocks)) && !window.sharing) {
        await share(tenant, kind, window, signal);
      }
      return { limit, remaining: Math.max(0, limit - used - 1), resetSeconds };
    },
  };
}

interface Full {
  readonly limit: number;
  readonly current: number;
  readonly before: number;
  readonly leftMs: number;
  readonly resetSeconds: number;
}

/** Whole seconds until one more fits. */
function waitOf({ limit, current, before, leftMs, resetSeconds }: Full): number {
  const free = limit - current - 1;
  if (free < 0 || before === 0) {
    // This minute is full by itself: the next one starts with it as its past, and needs the share of one to go.
    return limit === 0
      ? 60
      : resetSeconds + Math.max(0, Math.ceil((60 * (current - limit + 1)) / Math.max(1, current)));
  }
  return Math.max(1, Math.ceil((before * leftMs - free * windowMs) / (before * 1_000)));
}
