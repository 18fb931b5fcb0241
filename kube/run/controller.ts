/** Runs one reconcile function over the keys that its watches name: level-triggered, retried, resynced. */

import { sharedByMany } from '#shared/async/abort-scope.ts';
import type { Random } from '#shared/async/backoff.ts';
import type { KubeObject } from '#shared/domain/kube-object.ts';
import { type Outcome, requeueAfterMs } from '#shared/domain/outcome.ts';
import { AppError, codeOf, isRetryable } from '#shared/errors/app-error.ts';
import { messageOf } from '#shared/errors/message-of.ts';
import type { Clock } from '#shared/ports/clock.ts';
import type { Log } from '#shared/ports/log.ts';
import { outageTrackerBehind } from '../http/outage-tracker.ts';
import type { ControllerMetrics } from '../model/metrics.ts';
import type { Cache, Change, Controller, ControllerOptions, Watch } from '../model/types.ts';
import { KeyQueue } from './work-queue.ts';

export interface ControllerDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics?: ControllerMetrics;
  readonly random?: Random;
}

/** Keys that waited for the same server do not all come at once. */
const returnSpreadMs = 200;

/** A namespace that is being deleted takes no new object. What wanted one there learns of the deletion by its watch, or goes with it. */
function isNamespaceEnding(error: unknown): boolean {
  const causes = error instanceof AppError ? error.detail.causes : undefined;
  return (
    Array.isArray(causes) && (causes as { reason?: string }[]).some(({ reason }) => reason === 'NamespaceTerminating')
  );
}

/** Erases the kind, so that watches of different kinds fit in one list. */
export const watch = <T extends KubeObject>(cache: Cache<T>, keys: (object: T) => Iterable<string>): Watch =>
  ({ cache, keys }) as unknown as Watch;

export function createController(
  { name, watches, workers = 2, resyncMs = 5 * 60_000, ownerOf, reconcile }: ControllerOptions,
  { clock, log: parent, metrics: given, random = Math.random }: ControllerDeps,
): Controller {
  const log = parent.with({ controller: name });
  let metrics = given;
  const createQueue = (): KeyQueue => new KeyQueue({ clock, random, ...(ownerOf ? { ownerOf } : {}) });
  let queue = createQueue();
  /** Per key that failed by a silent API server: the function that ends its subscription to the outage tracker. */
  const awaited = new Map<string, () => void>();
  /** Per key, what was last logged, so that a lasting failure is reported once. */
  const reported = new Map<string, string>();

  async function pass(key: string, signal: AbortSignal): Promise<void> {
    const startedAt = clock.now();
    let kind: Outcome['kind'] | 'error' = 'error';
    try {
      const outcome = await reconcile(key, signal);
      kind = outcome.kind;
      queue.forgive(key);
      reported.delete(key);
      awaitNoLonger(key);
      const afterMs = requeueAfterMs(outcome);
      if (afterMs !== undefined) queue.addAfter(key, afterMs);
    } catch (error) {
      if (signal.aborted) return;
      report(key, error, queue.addAfterFailure(key));
      awaitReturn(key, error);
    } finally {
      metrics?.reconciled(name, kind, (clock.now() - startedAt) / 1000, key);
    }
  }

  /** A key that failed by a silent API server is retried as soon as the server answers, before its back-off ends. */
  function awaitReturn(key: string, error: unknown): void {
    awaitNoLonger(key);
    const forget = outageTrackerBehind(error)?.onReturn(() => {
      awaited.delete(key);
      queue.forgive(key);
      queue.addAfter(key, random() * returnSpreadMs);
    });
    if (forget !== undefined) awaited.set(key, forget);
  }

  function awaitNoLonger(key: string): void {
    awaited.get(key)?.();
    awaited.delete(key);
  }

  function report(key: string, error: unknown, delayMs: number): void {
    const code = codeOf(error);
    const fields = { key, code, failures: queue.failures(key), delayMs };
    const signature = `${code} ${messageOf(error)}`;
    // Write conflicts are part of optimistic concurrency, and so is a namespace whose deletion a cache does not show yet.
    if (code === 'kube_conflict' || isNamespaceEnding(error) || reported.get(key) === signature) {
      log.debug('reconcile failed', fields);
      return;
    }
    reported.set(key, signature);
    if (isRetryable(error) && code !== 'internal') {
      log.warn('reconcile failed', { ...fields, error: messageOf(error) });
    } else log.error('reconcile failed', error, fields);
  }

  async function work(signal: AbortSignal): Promise<void> {
    for (;;) {
      const key = await queue.take();
      if (key === undefined) return;
      metrics?.queued(name, queue.depth);
      try {
        await pass(key, signal);
      } finally {
        queue.done(key);
      }
    }
  }

  /** Spread over a tenth of the period, so that a large cache does not come all at once. */
  async function resync(signal: AbortSignal): Promise<void> {
    for (;;) {
      await clock.sleep(resyncMs * (0.9 + 0.2 * random()), signal);
      for (const { cache, keys } of watches) {
        for (const object of cache.list()) {
          for (const key of keys(object)) queue.addAfter(key, (random() * resyncMs) / 10);
        }
      }
    }
  }

  const subscribe = ({ cache, keys }: Watch): (() => void) =>
    cache.subscribe(({ before, after }: Change<KubeObject>) => {
      // Once per change: an idle worker takes a key at its first addition, and a second one would cost a second pass.
      const touched = new Set<string>();
      for (const object of [before, after]) if (object !== undefined) for (const key of keys(object)) touched.add(key);
      for (const key of touched) queue.add(key);
    });

  return {
    name,
    enqueue: (key) => queue.add(key),
    measure(by) {
      metrics = by;
    },
    async run(signal) {
      sharedByMany(signal);
      const close = (): void => queue.close();
      signal.addEventListener('abort', close, { once: true });
      const unsubscribes = watches.map(subscribe);
      try {
        if (signal.aborted) return;
        await Promise.all(watches.map(({ cache }) => cache.synced(signal)));
        log.debug('controller started', { keys: queue.depth });
        const resyncing = resync(signal).catch((error: unknown) => {
          if (!signal.aborted) log.error('resync failed', error);
        });
        await Promise.all([resyncing, ...Array.from({ length: workers }, () => work(signal))]);
      } catch (error) {
        if (!signal.aborted) throw error;
      } finally {
        for (const unsubscribe of unsubscribes) unsubscribe();
        signal.removeEventListener('abort', close);
        queue.close();
        for (const key of [...awaited.keys()]) awaitNoLonger(key);
        // Leadership may come back: the next run starts with an empty queue, which its subscriptions fill.
        queue = createQueue();
      }
    },
  };
}
