/** Sends requests to one API server with a deadline, and repeats those that may be repeated. */
import { backoffMs, type Random } from '#shared/async/backoff.ts';
import { AppError, codeOf } from '#shared/errors/app-error.ts';
import type { Clock } from '#shared/ports/clock.ts';
import type { Log } from '#shared/ports/log.ts';
import type { ClientMetrics } from '../model/metrics.ts';
import type { ClusterConnection } from './connection.ts';
import { exchange, statusError } from './request.ts';

export interface SenderDeps {
  readonly log: Log;
  readonly clock: Clock;
  readonly random?: Random;
  readonly metrics?: ClientMetrics;
}

export interface RetryingClientOptions {
  /** Per request, retries included; also the longest silence inside an answer. */
  readonly timeoutMs?: number;
  /** How often a repeatable request is repeated after `kube_unreachable` or `kube_throttled`. */
  readonly retries?: number;
}

export interface Call {
  readonly method: string;
  readonly path: string;
  readonly body?: unknown;
  readonly contentType?: string;
  /** Of the answer; JSON unless told. */
  readonly accept?: string;
  /** Doing it twice is the same as once. */
  readonly repeatable?: boolean;
  /** Instead of `timeoutMs`, for answers that are long. */
  readonly deadlineMs?: number;
}

/** The text of a successful answer; fails with `kube_*`. */
export type Send = (call: Call, signal?: AbortSignal) => Promise<string>;

const json = 'application/json';

export function createRetryingClient(
  connection: ClusterConnection,
  { log, clock, random = Math.random, metrics }: SenderDeps,
  { timeoutMs = 10_000, retries = 3 }: RetryingClientOptions = {},
): Send {
  async function once(call: Call, deadlineMs: number, signal: AbortSignal | undefined): Promise<string> {
    const body = call.body === undefined ? undefined : JSON.stringify(call.body);
    const headers: Record<string, string> = { accept: call.accept ?? json };
    if (body !== undefined) {
      headers['content-type'] = call.contentType ?? json;
      headers['content-length'] = String(Buffer.byteLength(body));
    }
    const request = { method: call.method, path: call.path, headers, deadlineMs, idleMs: timeoutMs };
    const reply = await exchange(connection, body === undefined ? request : { ...request, body }, clock, signal).catch(
      (error: unknown) => {
        if (signal?.aborted !== true) metrics?.requested(call.method, 0);
        throw error;
      },
    );
    metrics?.requested(call.method, reply.status);
    if (reply.status >= 200 && reply.status < 300) return reply.text;
    throw statusError(reply.status, reply.text, reply.headers);
  }

  return async (call, signal) => {
    const endsAt = clock.now() + (call.deadlineMs ?? timeoutMs);
    for (let attempt = 1; ; attempt++) {
      try {
        return await once(call, Math.max(1, endsAt - clock.now()), signal);
      } catch (error) {
        const delayMs = retryDelayMs(error, call, attempt, random);
        if (delayMs === undefined || attempt > retries || clock.now() + delayMs >= endsAt) throw error;
        log.debug('repeating an API request', { method: call.method, path: call.path, code: codeOf(error), delayMs });
        await clock.sleep(delayMs, signal);
      }
    }
  };
}

/** Undefined: not to be repeated. */
function retryDelayMs(error: unknown, call: Call, attempt: number, random: Random): number | undefined {
  if (call.repeatable !== true || !(error instanceof AppError)) return undefined;
  if (error.code === 'kube_throttled') {
    const asked = typeof error.detail.retryAfterMs === 'number' ? error.detail.retryAfterMs : 1_000;
    return asked + Math.round(random() * 250);
  }
  if (error.code !== 'kube_unreachable') return undefined;
  return error.detail.stale === true ? 0 : backoffMs(attempt, { baseMs: 100, maxMs: 2_000, random });
}
