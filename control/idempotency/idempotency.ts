/** Remembers the answer to a POST under its Idempotency-Key, so that a repeated request gets the same answer and changes nothing. */
import { AppError, codeOf } from '#shared/errors/app-error.ts';
import type { Caller } from '../access/caller.ts';
import { sha256Hex } from '../access/secrets.ts';
import type { ControlDeps } from '../model/deps.ts';
import type { Item } from '../ports/store.ts';
import { key as keys } from '../store/keys.ts';

interface StoredResponse {
  readonly status: number;
  /** JSON. Must hold no secret unless `keep` is false. */
  readonly body: unknown;
}

export interface Idempotency {
  /**
   * Runs `work` at most once per caller and key within 24 hours and returns its answer, replayed when it ran before. `fingerprint` is a
   * hash of method, path and body: another one under the same key is `idempotency_mismatch`. While a first run is under way (or crashed
   * less than a minute ago) a second is `in_progress`. When `work` throws, nothing is remembered. Answers that hold secrets pass
   * `keep: false`: they are not stored, and a repeat is `already_exists`.
   */
  once(
    caller: Caller,
    key: string,
    fingerprint: string,
    work: () => Promise<StoredResponse>,
    options?: { readonly keep?: boolean },
    signal?: AbortSignal,
  ): Promise<StoredResponse & { readonly replayed: boolean }>;
}

interface Memory {
  readonly fingerprint: string;
  /** Absent while the work is under way. */
  readonly response?: StoredResponse;
  readonly startedAt: number;
  readonly secret?: boolean;
}

const keptMs = 24 * 3_600_000;
const leaseMs = 60_000;

export function createIdempotency({ store, clock }: Pick<ControlDeps, 'store' | 'clock'>): Idempotency {
  /** The earlier answer, or the version of our claim to do the work. */
  async function claim(
    at: ReturnType<typeof keys.idempotency>,
    fingerprint: string,
    signal?: AbortSignal,
  ): Promise<{ readonly response: StoredResponse } | { readonly version: number }> {
    const now = clock.now();
    const before = await store.get<Memory>(at.pk, at.sk, signal);
    const value: Memory = { fingerprint, startedAt: now };
    const expiresAt = now + keptMs;
    if (before) {
      const response = earlier(before, fingerprint, now);
      if (response) return { response };
    }
    try {
      await store.transact(
        [
          before
            ? { op: 'update', ...at, value, expiresAt, ifVersion: before.version }
            : { op: 'put', ...at, value, expiresAt },
        ],
        [],
        signal,
      );
    } catch (error) {
      if (codeOf(error) === 'version_conflict') throw underWay();
      throw error;
    }
    return { version: (before?.version ?? 0) + 1 };
  }

  return {
    async once(caller, key, fingerprint, work, { keep = true } = {}, signal) {
      if (!/^[\x21-\x7e]{1,255}$/.test(key)) {
        throw new AppError(
          'malformed_request',
          'Idempotency-Key must be 1 to 255 printable ASCII characters without spaces',
        );
      }
      const at = keys.idempotency(caller.tenant, sha256Hex(`${caller.principal}\n${key}`));
      const claimed = await claim(at, fingerprint, signal);
      if ('response' in claimed) return { ...claimed.response, replayed: true };
      const { version } = claimed;
      let response: StoredResponse;
      try {
        response = await work();
      } catch (error) {
        await store.transact([{ op: 'delete', ...at, ifVersion: version }]).catch(() => undefined);
        throw error;
      }
      const startedAt = clock.now();
      const value: Memory = keep ? { fingerprint, startedAt, response } : { fingerprint, startedAt, secret: true };
      // Losing this write loses only the memory: the work is done, and its caller must hear so.
      await store
        .transact([{ op: 'update', ...at, value, ifVersion: version, expiresAt: startedAt + keptMs }])
        .catch(() => undefined);
      return { ...response, replayed: false };
    },
  };
}

const underWay = (): AppError =>
  new AppError('in_progress', 'an earlier request with this Idempotency-Key is still being worked on');

/** Undefined: the run that left this behind must have crashed. */
function earlier({ value }: Item<Memory>, fingerprint: string, now: number): StoredResponse | undefined {
  if (value.fingerprint !== fingerprint) {
    throw new AppError('idempotency_mismatch', 'this Idempotency-Key was used for a different request; use a new key');
  }
  if (value.response) return value.response;
  if (value.secret) {
    throw new AppError(
      'already_exists',
      'the request with this Idempotency-Key was answered before; its answer held a secret and was not kept',
    );
  }
  if (now - value.startedAt < leaseMs) throw underWay();
  return undefined;
}
