/** Remembers the answer to a POST under its Idempotency-Key, so that a repeated request gets the same answer and changes nothing. */
import type { Caller } from '../access/caller.ts';
import type { ControlDeps } from '../deps.ts';

export interface StoredResponse {
  readonly status: number;
  /** JSON. Must hold no secret: answers with secrets are not stored, see `forget`. */
  readonly body: unknown;
}

export interface Idempotency {
  /**
   * Runs `work` at most once per caller and key within 24 hours and returns its answer, replayed when it ran before. `fingerprint` is a hash of
   * method, path and body: another one under the same key is `idempotency_mismatch`. While a first run is under way (or crashed less than a minute ago) a
   * second is `in_progress`. When `work` throws, nothing is remembered. Answers that hold secrets pass `keep: false`: a repeat is then `already_exists`.
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

export function createIdempotency(_deps: ControlDeps): Idempotency {
  throw new Error('bodies follow');
}
