/** The two reads that a cache lives on: one page of a list, and a watch. */
import { watchdog } from '#shared/async/idle-timeout.ts';
import type { KubeObject, ResourceType } from '#shared/domain/kube-object.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { Clock } from '#shared/ports/clock.ts';
import type { AnswerBounds } from '../http/answer-bounds.ts';
import type { ClusterConnection } from '../http/connection.ts';
import { DocumentStream } from '../http/document-stream.ts';
import { fetchPage, type Page } from '../http/list-page.ts';
import { isLossy, type OutageTracker, outageTrackerOf, whenLeftBehind } from '../http/outage-tracker.ts';
import { collectionPath, withQuery } from '../http/paths.ts';
import { leftBehind, noteAnswer, openRequest, statusError, unreachableError } from '../http/request.ts';
import type { Send } from '../http/retrying-client.ts';
import type { ListOptions } from '../model/types.ts';

export type WatchEvent<T> =
  | { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK'; readonly object: T }
  | { readonly type: 'ERROR'; readonly object: unknown };

interface WatchLimits {
  /** Asks the server to end the watch after so long. */
  readonly timeoutSeconds: number;
  /** How long it may take until the server accepts the watch. */
  readonly connectMs: number;
  /** Silence after which the connection counts as dead. Longer than a minute, the period of bookmarks. */
  readonly idleMs: number;
}

interface WatchHandlers<T> {
  /** The server has taken the watch. */
  accepted?(): void;
  event(event: WatchEvent<T>): void;
}

/** Where a cache gets its objects from. */
export interface ListWatch<T extends KubeObject> {
  /** Tells when the server is back after an outage, before this cache has asked it again. */
  readonly outages?: OutageTracker;
  /** Of a server that is not ours. */
  readonly bounds?: AnswerBounds;
  /** Fails with `kube_gone` when the snapshot of `next` is gone: start again without it. */
  page(next: string | undefined, signal: AbortSignal): Promise<Page<T>>;
  /**
   * Tells each event after `resourceVersion`, in order; resolves when the server ends the watch. Rejects with `kube_gone` when
   * that version is too old, otherwise with `kube_*`.
   */
  watch(resourceVersion: string, limits: WatchLimits, handlers: WatchHandlers<T>, signal: AbortSignal): Promise<void>;
}

export function createListWatch<T extends KubeObject>(
  connection: ClusterConnection,
  send: Send,
  clock: Clock,
  type: ResourceType<T>,
  options: ListOptions,
  pageSize: number,
): ListWatch<T> {
  return {
    outages: outageTrackerOf(connection),
    ...(connection.bounds && { bounds: connection.bounds }),
    page: (next, signal) => fetchPage(send, type, options, { limit: pageSize, next }, signal),
    async watch(resourceVersion, limits, handlers, signal) {
      await connection.authorize();
      signal.throwIfAborted();
      const path = withQuery(collectionPath(type, options.namespace), {
        watch: 1,
        allowWatchBookmarks: true,
        resourceVersion,
        timeoutSeconds: limits.timeoutSeconds,
        labelSelector: options.labelSelector,
        fieldSelector: options.fieldSelector,
      });
      await stream(connection, path, { clock, limits, handlers: handlers as WatchHandlers<unknown>, signal });
    },
  };
}

/** Of what a server says about a watch that it refuses. */
const longestRefusal = 1 << 20;

interface Streaming {
  readonly clock: Clock;
  readonly limits: WatchLimits;
  readonly handlers: WatchHandlers<unknown>;
  readonly signal: AbortSignal;
}

async function stream(connection: ClusterConnection, path: string, at: Streaming): Promise<void> {
  const request = openRequest(connection, { method: 'GET', path, headers: { accept: 'application/json' } });
  const silent = (limitMs: number): void =>
    void request.destroy(
      new AppError('kube_unreachable', `the watch of ${path.split('?')[0]} was silent for ${limitMs / 1000} s`),
    );
  let guard = watchdog(at.clock, { idleMs: at.limits.connectMs }, silent);
  const outages = outageTrackerOf(connection);
  let lastByteAt: number | undefined;
  let documents: DocumentStream | undefined;
  const giveUp = (): void => void request.destroy(leftBehind(connection));
  let forget = whenLeftBehind(outages, at.clock, giveUp);
  // What said nothing since before an outage may have died in it, and is not missed until it counts as silent.
  const outlive = (silentSince: number): void => {
    const isSilent = lastByteAt === undefined || lastByteAt <= silentSince;
    if (isSilent && isLossy(silentSince, at.clock.now())) giveUp();
    else forget = outages.onReturn(outlive);
  };
  const abort = (): void => void request.destroy();
  at.signal.addEventListener('abort', abort, { once: true });
  try {
    await new Promise<void>((resolve, reject) => {
      request.on('error', reject);
      request.once('response', (response) => {
        forget();
        noteAnswer(connection, response.statusCode, at.clock);
        lastByteAt = at.clock.now();
        forget = outages.onReturn(outlive);
        guard.stop();
        guard = watchdog(at.clock, { idleMs: at.limits.idleMs }, silent);
        response.on('error', reject);
        // `aborted` streams end without 'end'; either way the version of the last event says where to go on.
        response.once('close', resolve);
        const refused: Buffer[] = [];
        let refusedBytes = 0;
        documents = new DocumentStream((event) => {
          const failure = watchFailure(event as WatchEvent<unknown>);
          if (failure !== undefined) throw failure;
          at.handlers.event(event as WatchEvent<unknown>);
        }, connection.bounds);
        const ok = response.statusCode === 200;
        if (ok) at.handlers.accepted?.();
        response.on('data', (chunk: Buffer) => {
          guard.touch();
          lastByteAt = at.clock.now();
          if (!ok) {
            refusedBytes += chunk.length;
            return void (refusedBytes > longestRefusal ? request.destroy() : refused.push(chunk));
          }
          try {
            documents?.push(chunk);
          } catch (error) {
            request.destroy();
            reject(error instanceof SyntaxError ? new AppError('kube_failed', 'a watch event is not JSON') : error);
          }
        });
        response.once('end', () => {
          if (ok) resolve();
          else reject(statusError(response.statusCode ?? 0, Buffer.concat(refused).toString('utf8'), response.headers));
        });
      });
      request.end();
    });
  } catch (error) {
    if (!at.signal.aborted) throw unreachableError(connection, error, at.clock, request.reusedSocket);
  } finally {
    forget();
    documents?.release();
    guard.stop();
    at.signal.removeEventListener('abort', abort);
    request.destroy();
  }
  at.signal.throwIfAborted();
}

/** An ERROR event is a Status in disguise. */
function watchFailure(event: WatchEvent<unknown>): AppError | undefined {
  if (event.type !== 'ERROR') return undefined;
  const status = event.object as { code?: number };
  return statusError(status.code ?? 500, JSON.stringify(event.object));
}
