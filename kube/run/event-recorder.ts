/** Writes Kubernetes Events, one series per (object, type, reason, message); bounded in rate and memory, and never in the way. */
import { abortScope, type LinkedAbort } from '#shared/async/abort-scope.ts';
import { FairQueue } from '#shared/async/fair-queue.ts';
import { events as eventKind, type KubeEvent } from '#shared/domain/core-kinds.ts';
import type { KubeObject } from '#shared/domain/kube-object.ts';
import { codeOf, isRetryable } from '#shared/errors/app-error.ts';
import type { Clock } from '#shared/ports/clock.ts';
import type { Log } from '#shared/ports/log.ts';
import type { EventRecorder, KubeApi } from '../model/types.ts';

export interface EventRecorderDeps {
  readonly api: KubeApi;
  readonly clock: Clock;
  readonly log: Log;
}

export interface EventAuthor {
  readonly reportingController: string;
  readonly reportingInstance: string;
}

/** Without a repetition for so long, a series is over. */
const seriesMs = 10 * 60_000;
/** A series is written again at most so often, however often it happens. */
const repeatMs = 30_000;
const maxSeries = 1_000;
/** More good news than are written in a minute are not news any more: pods that start by the thousand say so themselves. */
const maxNormal = 100;
/** Writes: at most `burst` at once, then one each `refillMs`. */
const burst = 50;
const refillMs = 500;
const noteBytes = 1_024;

interface Series {
  readonly namespace: string;
  readonly event: KubeEvent;
  count: number;
  /** 0: it is not there yet. */
  writtenCount: number;
  lastAt: number;
  triedAt: number | undefined;
}

export function createEventRecorder(
  { api, clock, log }: EventRecorderDeps,
  author: EventAuthor,
  signal: AbortSignal,
): EventRecorder {
  const series = new Map<string, Series>();
  let tokens = burst;
  let refilledAt = clock.now();
  let serial = 0;
  let dropped = 0;
  /** Series that have something to write, in fair queues by namespace; warnings come first. */
  const pending = { Warning: new FairQueue<Series>(maxSeries), Normal: new FairQueue<Series>(maxNormal) };
  let writing = false;
  let nap: LinkedAbort | undefined;

  function take(): boolean {
    const earned = Math.floor((clock.now() - refilledAt) / refillMs);
    tokens = Math.min(burst, tokens + earned);
    refilledAt += earned * refillMs;
    if (tokens === 0) return false;
    tokens--;
    return true;
  }

  async function drain(): Promise<void> {
    writing = true;
    try {
      while (pendingCount() > 0 && !signal.aborted) {
        const { due, waitForMs } = next();
        if (due === undefined) await rest(waitForMs);
        else if (take()) {
          queueOf(due).delete(due);
          await write(due);
        } else await clock.sleep(refillMs, signal);
      }
    } catch (error) {
      if (!signal.aborted) log.error('the event recorder failed', error);
    } finally {
      writing = false;
    }
  }

  const pendingCount = (): number => pending.Warning.size + pending.Normal.size;
  const queueOf = ({ event }: Series): FairQueue<Series> => pending[event.type === 'Warning' ? 'Warning' : 'Normal'];

  /** The first that may be written now, or how long it is until then. */
  function next(): { readonly due?: Series; readonly waitForMs: number } {
    let waitForMs = Number.POSITIVE_INFINITY;
    for (const queue of [pending.Warning, pending.Normal]) {
      for (const due of queue) {
        const ms = waitMs(due);
        if (ms <= 0) return { due, waitForMs: 0 };
        waitForMs = Math.min(waitForMs, ms);
      }
    }
    return { waitForMs };
  }

  const waitMs = (next: Series): number =>
    next.triedAt === undefined ? 0 : Math.max(0, next.triedAt + repeatMs - clock.now());

  /** Repetitions are written together when their time comes; a new series does not wait for that. */
  async function rest(ms: number): Promise<void> {
    nap = abortScope(signal);
    await clock.sleep(ms, nap.signal).catch(() => undefined);
    nap.unlink();
    nap = undefined;
  }

  async function write(next: Series): Promise<void> {
    const { count } = next;
    let isLate = false;
    try {
      if (next.writtenCount === 0 || !(await repeat(next, count))) await create(next.event);
      next.writtenCount = count;
    } catch (error) {
      if (!signal.aborted) log.debug('an event was not written', { code: codeOf(error), reason: next.event.reason });
      isLate = isRetryable(error) && clock.now() - next.lastAt < seriesMs;
    }
    next.triedAt = clock.now();
    if (next.count > count || isLate) queueOf(next).add(next.namespace, next);
  }

  async function create(event: KubeEvent): Promise<void> {
    try {
      await api.create(eventKind, event, { answer: 'metadata' }, signal);
    } catch (error) {
      // The event is ours, and the answer to an earlier write was lost: no other client makes such names.
      if (codeOf(error) !== 'kube_already_exists') throw error;
    }
  }

  /** False: the event of this series is gone. */
  async function repeat({ event, namespace, lastAt }: Series, count: number): Promise<boolean> {
    const ref = { namespace, name: event.metadata.name };
    const patch = { series: { count, lastObservedTime: microTime(lastAt) } };
    try {
      await api.mergePatch(eventKind, ref, patch, { answer: 'metadata' }, signal);
      return true;
    } catch (error) {
      if (codeOf(error) === 'kube_not_found') return false;
      throw error;
    }
  }

  function forgetOld(): void {
    for (const [key, known] of series) {
      if (clock.now() - known.lastAt < seriesMs && series.size < maxSeries) return;
      series.delete(key);
    }
  }

  function start(): void {
    nap?.abort();
    if (!writing) void drain();
  }

  return {
    emit(regarding, type, reason, message) {
      if (signal.aborted) return;
      const note = clip(message);
      const key = JSON.stringify([regarding.metadata.uid, regarding.kind, regarding.metadata.name, type, reason, note]);
      const known = series.get(key);
      if (known !== undefined && clock.now() - known.lastAt < seriesMs) {
        known.count++;
        known.lastAt = clock.now();
        series.delete(key);
        series.set(key, known);
        queueOf(known).add(known.namespace, known);
        if (!writing) start();
        return;
      }
      const now = clock.now();
      const event = build(regarding, { type, reason, note }, author, now, serial++);
      const namespace = event.metadata.namespace ?? 'default';
      const fresh = { namespace, event, count: 1, writtenCount: 0, lastAt: now, triedAt: undefined };
      if (pending[type].isFull && type === 'Warning' && dropped++ === 0)
        log.warn('too many events at once; some are dropped', { pending: pending.Warning.size });
      if (!pending[type].offer(namespace, fresh)) return;
      forgetOld();
      series.set(key, fresh);
      start();
    },
  };
}

function build(
  regarding: KubeObject,
  what: { readonly type: string; readonly reason: string; readonly note: string },
  author: EventAuthor,
  now: number,
  serial: number,
): KubeEvent {
  const { namespace = 'default', name, uid, resourceVersion } = regarding.metadata;
  const suffix = `${now.toString(16)}${serial.toString(16).padStart(4, '0')}`;
  return {
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    metadata: { namespace, name: `${name.slice(0, 252 - suffix.length).replace(/[^a-z0-9]+$/, '')}.${suffix}` },
    eventTime: microTime(now),
    reportingController: author.reportingController,
    reportingInstance: author.reportingInstance.slice(0, 128),
    action: what.reason,
    reason: what.reason,
    note: what.note,
    type: what.type,
    regarding: {
      apiVersion: regarding.apiVersion,
      kind: regarding.kind,
      name,
      uid,
      resourceVersion,
      ...(regarding.metadata.namespace === undefined ? {} : { namespace: regarding.metadata.namespace }),
    },
  };
}

/** The API server limits the note to so many bytes. */
function clip(message: string): string {
  const bytes = Buffer.from(message, 'utf8');
  return bytes.length <= noteBytes
    ? message
    : `${bytes
        .subarray(0, noteBytes - 3)
        .toString('utf8')
        .replace(/\uFFFD+$/, '')}…`;
}

/** `metav1.MicroTime`. */
export const microTime = (nowMs: number): string => new Date(nowMs).toISOString().replace('Z', '000Z');
