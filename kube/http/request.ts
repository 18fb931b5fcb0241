/** One HTTP exchange with an API server: opening it, reading it whole with deadlines, and turning failures into `AppError`. */
import * as http from 'node:http';
import * as https from 'node:https';
import { watchdog } from '#shared/async/idle-timeout.ts';
import { AppError, codeOf } from '#shared/errors/app-error.ts';
import type { ErrorCode } from '#shared/errors/codes.ts';
import type { Clock } from '#shared/ports/clock.ts';
import { type ClusterConnection, pathAt } from './connection.ts';
import { connectionPoolOf, dropIdleConnections, type Sending } from './connection-pool.ts';
import { reported } from './exchange-reports.ts';
import { happenedOn, outageTrackerOf, whenLeftBehind } from './outage-tracker.ts';
import type { AnswerHeaders } from './response-parser.ts';
import { connectionOptions, hostOf } from './tls.ts';

export interface OpenRequest {
  readonly method: string;
  /** Path and query, from `/`. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  /** False: a socket of its own, never pooled; for upgrades. Default true. */
  readonly pooled?: boolean;
}

/**
 * Opens an authenticated request for streaming or an upgrade; the caller writes, ends and handles its events. Call
 * `await connection.authorize()` before.
 */
export function openRequest(connection: ClusterConnection, request: OpenRequest): http.ClientRequest {
  const { server } = connection;
  const headers: Record<string, string | string[]> = { 'user-agent': 'isthmus', ...connection.headers() };
  for (const [name, value] of Object.entries(request.headers ?? {})) {
    headers[name] = typeof value === 'string' ? value : [...value];
  }
  const { agent } = connection;
  // A connection that is not the agent's is opened where Node finds how, and no agent.
  const own = { ...connectionOptions(agent, server), createConnection: agent.createConnection.bind(agent) };
  const options: https.RequestOptions = {
    ...(request.pooled === false ? own : { agent }),
    protocol: server.protocol,
    hostname: hostOf(server),
    port: server.port || (server.protocol === 'https:' ? 443 : 80),
    method: request.method,
    path: pathAt(connection, request.path),
    headers,
  };
  return (server.protocol === 'https:' ? https : http).request(options);
}

export interface Exchange extends Omit<OpenRequest, 'pooled'> {
  readonly body?: string;
  /** For the whole exchange. */
  readonly deadlineMs: number;
  /** Between two pieces of the answer. */
  readonly idleMs: number;
}

export interface Reply {
  readonly status: number;
  readonly headers: AnswerHeaders;
  readonly text: string;
}

/** Resolves with any status; rejects with `kube_unreachable`, or with the signal's reason. */
export function exchange(
  connection: ClusterConnection,
  call: Exchange,
  clock: Clock,
  signal?: AbortSignal,
): Promise<Reply> {
  const what = { method: call.method, origin: connection.server.origin, path: pathAt(connection, call.path) };
  return reported(
    what,
    () => clock.now(),
    () => exchanged(connection, call, clock, signal),
  );
}

async function exchanged(
  connection: ClusterConnection,
  call: Exchange,
  clock: Clock,
  signal?: AbortSignal,
): Promise<Reply> {
  signal?.throwIfAborted();
  await connection.authorize();
  signal?.throwIfAborted();
  const text = requestText(connection, call);
  let sending: Sending | undefined;
  let stop = (): void => undefined;
  try {
    return await new Promise<Reply>((resolve, reject) => {
      let over = false;
      const silent = (afterMs: number): void => {
        if (over) return;
        dropIdleSockets(connection.agent);
        const what = `${call.method} ${call.path.split('?')[0]}`;
        const message = `${connection.server.origin} did not answer ${what} within ${afterMs / 1000} s`;
        sending?.abort(new AppError('kube_unreachable', message));
      };
      // A process that was kept from running hears of its deadlines before it reads the answers that came in time.
      const guard = watchdog(clock, { totalMs: call.deadlineMs, idleMs: call.idleMs }, (afterMs) =>
        setImmediate(silent, afterMs),
      );
      const abort = (): void => sending?.abort(abortError(signal));
      signal?.addEventListener('abort', abort, { once: true });
      let hasRun = false;
      const forget = whenLeftBehind(outageTrackerOf(connection), clock, () => {
        if (!hasRun) sending?.abort(leftBehind(connection));
      });
      stop = () => {
        over = true;
        forget();
        guard.stop();
        signal?.removeEventListener('abort', abort);
      };
      sending = connectionPoolOf(connection.agent, connection.server, () => clock.now(), connection.bounds).send(text, {
        piece: () => {
          hasRun = true;
          guard.touch();
        },
        answered(answer) {
          const { status, headers } = answer;
          try {
            resolve({ status, headers, text: answer.text() });
          } catch (error) {
            reject(error);
          }
          noteAnswer(connection, status, clock);
        },
        failed: reject,
      });
    });
  } catch (error) {
    if (signal?.aborted) throw signal.reason;
    throw unreachableError(connection, error, clock, sending?.reused);
  } finally {
    stop();
  }
}

/** Asking again is safe for reads, and needs no pause. */
export const leftBehind = ({ server }: ClusterConnection): AppError =>
  new AppError('kube_unreachable', `${server.origin} answers again, but not what it was asked before`, {
    detail: { server: server.origin, stale: true, leftBehind: true },
  });

/** As `openRequest` would send it. */
function requestText(connection: ClusterConnection, { method, path, headers, body = '' }: Exchange): string {
  const target = pathAt(connection, path);
  if (/[^\x21-\x7e]/.test(target)) throw new TypeError(`${JSON.stringify(target)} is no path of a request`);
  let text = `${method} ${target} HTTP/1.1\r\nhost: ${connection.server.host}\r\nconnection: keep-alive\r\nuser-agent: isthmus\r\n`;
  for (const of of [connection.headers(), headers]) {
    for (const name in of) {
      const values = of[name] ?? '';
      for (const value of typeof values === 'string' ? [values] : values) {
        if (/[^\t\x20-\x7e]/.test(value)) throw new TypeError(`the header ${name} has characters that none may have`);
        text += `${name}: ${value}\r\n`;
      }
    }
  }
  return `${text}\r\n${body}`;
}

/** When one connection has died silently, the idle connections of the same pool most likely have, too. */
function dropIdleSockets(agent: http.Agent): void {
  dropIdleConnections(agent);
  for (const sockets of Object.values(agent.freeSockets)) for (const socket of [...(sockets ?? [])]) socket.destroy();
}

const abortError = (signal: AbortSignal | undefined): Error =>
  signal?.reason instanceof Error ? signal.reason : new Error('aborted');

/** Statuses by which a proxy or load balancer reports that the API server behind it is down. */
const isAbsence = (status: number | undefined): boolean => status === 502 || status === 503 || status === 504;

/** Reports to the outage tracker that an answer has begun. */
export function noteAnswer(connection: ClusterConnection, status: number | undefined, clock: Clock): void {
  if (isAbsence(status)) outageTrackerOf(connection).failed(clock.now());
  else outageTrackerOf(connection).answered(clock.now());
}

/**
 * Any failure below HTTP, reported to the outage tracker. `detail.stale` marks a pooled socket that was dead already: asking again is safe for reads.
 */
export function unreachableError(
  connection: ClusterConnection,
  error: unknown,
  clock: Clock,
  reused = false,
): AppError {
  const failure = belowHttp(connection, error, reused);
  if (failure.code !== 'kube_unreachable' || failure.detail.status !== undefined) return failure;
  const tracker = outageTrackerOf(connection);
  if (failure.detail.leftBehind !== true) tracker.failed(clock.now());
  return happenedOn(tracker, failure);
}

function belowHttp(connection: ClusterConnection, error: unknown, reused: boolean): AppError {
  if (codeOf(error) !== undefined) return error as AppError;
  const reason = error instanceof Error ? error.message || (error as NodeJS.ErrnoException).code : String(error);
  const code = (error as NodeJS.ErrnoException).code;
  return new AppError('kube_unreachable', `the API server ${connection.server.origin} is not reachable: ${reason}`, {
    detail: { server: connection.server.origin, ...(code === undefined ? {} : { reason: code }), stale: reused },
    cause: error,
  });
}

interface StatusBody {
  readonly kind?: string;
  readonly message?: string;
  readonly reason?: string;
  readonly code?: number;
  readonly details?: {
    readonly name?: string;
    readonly kind?: string;
    readonly retryAfterSeconds?: number;
    readonly causes?: readonly { readonly field?: string; readonly message?: string; readonly reason?: string }[];
  };
}

/** A `metav1.Status` (or any other text) as our error, with the server's own message. */
export function statusError(status: number, text: string, headers: http.IncomingHttpHeaders = {}): AppError {
  const body = parseStatus(text);
  const message = body.message ?? (text.trim().slice(0, 500) || `the API server answered ${status}`);
  const retryAfterS = Number(headers['retry-after'] ?? body.details?.retryAfterSeconds ?? Number.NaN);
  const causes = body.details?.causes?.map((cause) => ({
    field: cause.field,
    message: cause.message,
    ...(cause.reason === undefined ? {} : { reason: cause.reason }),
  }));
  return new AppError(codeFor(status, body.reason, message, Number.isFinite(retryAfterS)), message, {
    detail: {
      status,
      ...(body.reason === undefined ? {} : { reason: body.reason }),
      ...(body.details?.name === undefined ? {} : { name: body.details.name }),
      ...(causes === undefined ? {} : { causes, field: causes[0]?.field }),
      ...(Number.isFinite(retryAfterS) ? { retryAfterMs: retryAfterS * 1000 } : {}),
    },
  });
}

function codeFor(status: number, reason: string | undefined, message: string, retryAfter: boolean): ErrorCode {
  switch (status) {
    case 400:
    case 413:
    case 415:
    case 422:
      return 'kube_invalid';
    case 401:
      return 'kube_unauthorized';
    case 403:
      // A webhook's refusal carries the webhook's own code, most often 403; only the server's wording tells it from missing rights.
      return message.startsWith('admission webhook ') ? 'kube_invalid' : 'kube_forbidden';
    case 404:
      return 'kube_not_found';
    case 409:
      return reason === 'AlreadyExists' ? 'kube_already_exists' : 'kube_conflict';
    case 410:
      return 'kube_gone';
    case 429:
      return 'kube_throttled';
    case 500:
    case 502:
    case 503:
    case 504:
      return retryAfter ? 'kube_throttled' : status === 500 ? 'kube_failed' : 'kube_unreachable';
    default:
      return 'kube_failed';
  }
}

function parseStatus(text: string): StatusBody {
  if (!text.startsWith('{')) return {};
  try {
    const body = JSON.parse(text) as StatusBody;
    return body.kind === 'Status' ? body : {};
  } catch {
    return {};
  }
}
