/** Remembers the answer to a POST under its Idempotency-Key, so that a repeated request gets the same answer and changes nothing. */
import { hkdfSync } from 'node:crypto';
import { AppError, codeOf } from '#shared/errors/app-error.ts';
import type { Caller, Repeat } from '../access/caller.ts';
import { openText, sealingKeyBytes, sealText } from '../access/sealed-text.ts';
import { sha256Hex } from '../access/secrets.ts';
import type { ControlDeps } from '../model/deps.ts';
import type { Key, Op } from '../ports/store.ts';
import { key as keys } from '../store/keys.ts';

interface StoredResponse {
  readonly status: number;
  /** JSON. */
  readonly body: unknown;
}

interface OneRequest {
  /** The Idempotency-Key. */
  readonly key: string;
  /** A hash of method, path and body: another one under the same key is `idempotency_mismatch`. */
  readonly fingerprint: string;
  /**
   * The answer holds a secret. It is sealed with a key made of this text, the credentials of the request, and of the Idempotency-Key: neither is
   * in the store, so only a repeat of the request by the same credentials opens it.
   */
  readonly credentials?: string;
}

export interface Idempotency {
  /**
   * Runs `work` at most once per caller and key within 24 hours and returns its answer, replayed when it ran before. What `work` gives to
   * `remember` is committed by the transaction that it puts the operation into: a later attempt gets it as `earlier`, also when this process
   * died right after that commit. While a first run is under way (or died less than a minute ago, before it changed anything) a second is
   * `in_progress`. When `work` throws before it changed anything, nothing is remembered.
   */
  once(
    caller: Caller,
    request: OneRequest,
    work: (repeat: Repeat) => Promise<StoredResponse>,
    signal?: AbortSignal,
  ): Promise<StoredResponse & { readonly replayed: boolean }>;
}

interface Memory {
  readonly fingerprint: string;
  readonly startedAt: number;
  /** The whole answer. */
  readonly response?: StoredResponse;
  /** What was committed, from which the answer is made again: as JSON, or sealed. */
  readonly result?: string;
  readonly sealed?: string;
  /** The answer held a secret and cannot be made again. */
  readonly secret?: true;
}

const keptMs = 24 * 3_600_000;
const leaseMs = 60_000;

export function createIdempotency({ store, clock }: Pick<ControlDeps, 'store' | 'clock'>): Idempotency {
  const update = (at: Key, value: Memory, ifVersion: number): Op => ({
    op: 'update',
    ...at,
    value,
    ifVersion,
    expiresAt: value.startedAt + keptMs,
  });

  /** The version of our claim to do the work. */
  async function claim(at: Key, value: Memory, before: number, signal?: AbortSignal): Promise<number> {
    const expiresAt = value.startedAt + keptMs;
    const op: Op = before === 0 ? { op: 'put', ...at, value, expiresAt } : update(at, value, before);
    await store.transact([op], [], signal).catch((error: unknown) => {
      throw codeOf(error) === 'version_conflict' ? underWay() : error;
    });
    return before + 1;
  }

  /** Losing this write loses nothing: the answer is made again of what was committed. */
  const keep = (at: Key, value: Memory, version: number): Promise<void> =>
    store.transact([update(at, value, version)]).catch(() => undefined);

  return {
    async once(caller, request, work, signal) {
      const { fingerprint, credentials } = request;
      if (!/^[\x21-\x7e]{1,255}$/.test(request.key)) {
        throw new AppError(
          'malformed_request',
          'Idempotency-Key must be 1 to 255 printable ASCII characters without spaces',
        );
      }
      const at = keys.idempotency(caller.tenant, sha256Hex(`${caller.principal}\n${request.key}`));
      const now = clock.now();
      const before = await store.get<Memory>(at.pk, at.sk, signal);
      if (before) {
        const { value, version } = before;
        mustBeThisRequest(value, fingerprint, now);
        if (value.response) return { ...value.response, replayed: true };
        const result = resultOf(value, request, at);
        if (result !== undefined) {
          const response = await work({
            earlier: JSON.parse(result),
            remember: () => ({ op: 'check', ...at, ifVersion: version }),
          });
          if (credentials === undefined) await keep(at, { ...value, response }, version);
          return { ...response, replayed: true };
        }
      }
      const started: Memory = { fingerprint, startedAt: now };
      const version = await claim(at, started, before?.version ?? 0, signal);
      let offered = false;
      const remember = (made: unknown): Op => {
        offered = true;
        const result = JSON.stringify(made);
        const value = credentials === undefined ? { result } : { sealed: sealText(sealingKey(request), result, at.sk) };
        return update(at, { ...started, ...value }, version);
      };
      let response: StoredResponse;
      try {
        response = await work({ remember });
      } catch (error) {
        // Changes nothing when the work was committed and failed afterwards: the version is another one.
        await store.transact([{ op: 'delete', ...at, ifVersion: version }]).catch(() => undefined);
        throw error;
      }
      if (credentials === undefined) await keep(at, { ...started, response }, offered ? version + 1 : version);
      else if (!offered) await keep(at, { ...started, secret: true }, version);
      return { ...response, replayed: false };
    },
  };
}

const sealingKey = ({ key, credentials = '' }: OneRequest): Uint8Array =>
  new Uint8Array(hkdfSync('sha256', `${credentials}\n${key}`, '', 'answer to a repeated request', sealingKeyBytes));

/** What an earlier attempt committed, as JSON text. */
function resultOf({ result, sealed, secret }: Memory, request: OneRequest, at: Key): string | undefined {
  if (result !== undefined) return result;
  if (sealed === undefined && !secret) return undefined;
  try {
    return openText(sealingKey(request), sealed ?? '', at.sk);
  } catch {
    throw new AppError(
      'already_exists',
      'the request with this Idempotency-Key was answered before; its answer held a secret, which opens only for the very credentials of that request',
    );
  }
}

const underWay = (): AppError =>
  new AppError('in_progress', 'an earlier request with this Idempotency-Key is still being worked on');

function mustBeThisRequest(value: Memory, fingerprint: string, now: number): void {
  if (value.fingerprint !== fingerprint) {
    throw new AppError('idempotency_mismatch', 'this Idempotency-Key was used for a different request; use a new key');
  }
  const { response, result, sealed, secret, startedAt } = value;
  const done = response ?? result ?? sealed ?? secret;
  if (done === undefined && now - startedAt < leaseMs) throw underWay();
}
