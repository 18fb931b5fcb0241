/** Keeps one store equal to the server: list, watch, and list again whenever the watch cannot go on. */
import { abortScope } from '#shared/async/abort-scope.ts';
import { backoffMs, type Random } from '#shared/async/backoff.ts';
import { apiVersionOf, type KubeObject, keyOf, type ObjectRef, type ResourceType } from '#shared/domain/kube-object.ts';
import { AppError, codeOf } from '#shared/errors/app-error.ts';
import type { Clock } from '#shared/ports/clock.ts';
import type { Log } from '#shared/ports/log.ts';
import { isTooLarge } from '../http/answer-bounds.ts';
import type { ClientMetrics } from '../model/metrics.ts';
import type { Cache, CacheOptions, Change, Transform } from '../model/types.ts';
import { KeptSizes } from './kept-sizes.ts';
import type { ListWatch, WatchEvent } from './list-watch.ts';
import { type IndexFn, Store } from './store.ts';

export interface InformerTiming {
  /** Silence after which a watch counts as dead; must exceed the minute between two bookmarks. */
  readonly idleMs: number;
  readonly connectMs: number;
  /** How long a watch is asked to last, at least; up to twice that, at random. */
  readonly watchSeconds: number;
  readonly backoffBaseMs: number;
  readonly backoffMaxMs: number;
}

export const defaultTiming: InformerTiming = {
  idleMs: 90_000,
  connectMs: 15_000,
  watchSeconds: 300,
  backoffBaseMs: 100,
  backoffMaxMs: 15_000,
};

export interface InformerDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly random?: Random;
  readonly metrics?: ClientMetrics;
}

/** A watch that ends sooner than this was no success: the next one waits. */
const shortestWatchMs = 1_000;
const snapshotRestarts = 5;
const alarmingFailures = 4;

export class Informer<T extends KubeObject> implements Cache<T> {
  readonly type: ResourceType<T>;
  readonly #source: ListWatch<T>;
  readonly #transform: Transform<T> | undefined;
  readonly #store: Store<T>;
  readonly #deps: InformerDeps & Required<Pick<InformerDeps, 'random'>>;
  readonly #timing: InformerTiming;
  /** Callbacks of callers that wait for the first list. */
  readonly #waiting = new Set<() => void>();
  #isSynced = false;
  #stopped: { readonly reason: unknown } | undefined;
  #aliveAt: number;
  #failures = 0;
  /** Of `#failures`, those before the server was last known to be back: the next ones wait as if they were the first. */
  #forgiven = 0;
  #acceptedAt: number | undefined;
  readonly #kept: KeptSizes;

  constructor(
    type: ResourceType<T>,
    source: ListWatch<T>,
    options: Pick<CacheOptions<T>, 'transform' | 'indexes'>,
    deps: InformerDeps,
    timing: InformerTiming = defaultTiming,
  ) {
    this.type = type;
    this.#source = source;
    this.#kept = new KeptSizes(source.bounds);
    this.#transform = options.transform;
    this.#deps = { random: Math.random, ...deps };
    this.#timing = timing;
    const failed = (error: unknown) => deps.log.error('a cache subscriber failed', error, { kind: type.kind });
    this.#store = new Store(failed, options.transform === undefined);
    for (const [name, of] of Object.entries(options.indexes ?? {})) this.#store.addIndex(name, of);
    this.#aliveAt = deps.clock.now();
  }

  get(ref: ObjectRef): T | undefined {
    return this.#store.get(ref.namespace === undefined ? ref.name : `${ref.namespace}/${ref.name}`);
  }

  list(): readonly T[] {
    return this.#store.list();
  }

  byIndex(index: string, value: string): readonly T[] {
    return this.#store.byIndex(index, value);
  }

  index(name: string): IndexFn<T> | undefined {
    return this.#store.index(name);
  }

  addIndex(name: string, of: IndexFn<T>): void {
    this.#store.addIndex(name, of);
  }

  synced(signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const settle = (): void => {
        if (this.#isSynced) resolve();
        else if (this.#stopped !== undefined) reject(this.#stopped.reason);
        else if (signal?.aborted) reject(signal.reason);
        else return;
        this.#waiting.delete(settle);
        signal?.removeEventListener('abort', settle);
      };
      this.#waiting.add(settle);
      signal?.addEventListener('abort', settle, { once: true });
      settle();
    });
  }

  isSynced(): boolean {
    return this.#isSynced;
  }

  subscribe(listener: (change: Change<T>) => void): () => void {
    return this.#store.subscribe(listener);
  }

  ageMs(): number {
    return this.#deps.clock.now() - this.#aliveAt;
  }

  /** Returns when the signal aborts; never throws. */
  async run(signal: AbortSignal): Promise<void> {
    let version: string | undefined;
    const unfollow = this.#deps.metrics?.watching(this.type.kind, () => this.ageMs());
    const progress = (seen: string): void => {
      version = seen;
    };
    while (!signal.aborted) {
      this.#acceptedAt = undefined;
      try {
        version ??= await this.#relist(signal);
        await this.#watch(version, signal, progress);
        if (!this.#lasted()) await this.#pause(new AppError('kube_unreachable', 'the watch ended at once'), signal);
      } catch (error) {
        if (signal.aborted) break;
        if (mustRelist(error)) version = undefined;
        this.#lasted();
        await this.#pause(error, signal).catch(() => undefined);
      }
    }
    unfollow?.();
    this.#store.silence();
    this.#kept.clear();
    this.#stopped = { reason: signal.reason };
    this.#settle();
  }

  #settle(): void {
    for (const settle of [...this.#waiting]) settle();
  }

  async #relist(signal: AbortSignal): Promise<string> {
    for (let restarts = 0; ; restarts++) {
      try {
        return await this.#relistOnce(signal);
      } catch (error) {
        if (codeOf(error) !== 'kube_gone' || restarts >= snapshotRestarts) throw error;
      }
    }
  }

  async #relistOnce(signal: AbortSignal): Promise<string> {
    const objects = new Map<string, T>();
    this.#kept.startList();
    let next: string | undefined;
    let version = '';
    do {
      const page = await this.#source.page(next, signal);
      version = page.resourceVersion;
      for (const item of page.items) {
        const key = keyOf(item);
        const object = this.#known(key, item) ?? this.#prepare(item);
        if (object === undefined) continue;
        this.#kept.listed(object);
        objects.set(key, object);
      }
      next = page.next;
    } while (next !== undefined);
    this.#kept.endList();
    this.#alive();
    this.#store.replace(objects);
    if (!this.#isSynced) {
      this.#isSynced = true;
      this.#settle();
    }
    return version;
  }

  /** What is stored already, if it is this very version: a relist then holds nothing twice. */
  #known(key: string, item: T): T | undefined {
    const stored = this.#store.get(key);
    const same =
      stored?.metadata.uid === item.metadata.uid && stored?.metadata.resourceVersion === item.metadata.resourceVersion;
    return same ? stored : undefined;
  }

  /** Undefined, and logged, when the transform fails: one odd object must not cost all the others. */
  #prepare(object: T): T | undefined {
    object.apiVersion ??= apiVersionOf(this.type);
    object.kind ??= this.type.kind;
    delete (object.metadata as { managedFields?: unknown }).managedFields;
    if (this.#transform === undefined) return object;
    const { uid, resourceVersion } = object.metadata;
    try {
      const kept = this.#transform(object);
      // By these the store tells versions and incarnations apart.
      if (uid !== undefined) kept.metadata.uid ??= uid;
      if (resourceVersion !== undefined) kept.metadata.resourceVersion ??= resourceVersion;
      return kept;
    } catch (error) {
      this.#deps.log.error('an object could not be cached', error, { kind: this.type.kind, key: keyOf(object) });
      return undefined;
    }
  }

  /** `progress` hears the version to go on from, however the watch ends. */
  async #watch(from: string, signal: AbortSignal, progress: (version: string) => void): Promise<void> {
    const limits = {
      timeoutSeconds: Math.round(this.#timing.watchSeconds * (1 + this.#deps.random())),
      connectMs: this.#timing.connectMs,
      idleMs: this.#timing.idleMs,
    };
    const event = (event: WatchEvent<T>): void => {
      if (event.type === 'ERROR') return;
      this.#alive();
      this.#recovered();
      const { object } = event;
      if (object.metadata.resourceVersion !== undefined) progress(object.metadata.resourceVersion);
      if (event.type === 'BOOKMARK') return;
      if (event.type === 'DELETED') this.#remove(object);
      else this.#put(object);
    };
    const accepted = (): void => {
      this.#acceptedAt = this.#deps.clock.now();
    };
    await this.#source.watch(from, limits, { accepted, event }, signal);
  }

  #put(object: T): void {
    const prepared = this.#prepare(object);
    if (prepared === undefined) return;
    this.#kept.put(prepared);
    this.#store.put(prepared);
  }

  #remove(object: T): void {
    const key = keyOf(object);
    this.#store.remove(key, object.metadata.uid);
    if (this.#store.get(key) === undefined) this.#kept.remove(key);
  }

  /** Whether the watch that just ended was one; a watch of quiet objects lasts without any event. */
  #lasted(): boolean {
    const lasted = this.#acceptedAt !== undefined && this.#deps.clock.now() - this.#acceptedAt >= shortestWatchMs;
    if (lasted) this.#recovered();
    return lasted;
  }

  #recovered(): void {
    if (this.#failures >= alarmingFailures) {
      this.#deps.log.info('a cache follows its API server again', { kind: this.type.kind, failures: this.#failures });
    }
    this.#failures = 0;
    this.#forgiven = 0;
  }

  #alive(): void {
    this.#aliveAt = this.#deps.clock.now();
  }

  async #pause(error: unknown, signal: AbortSignal): Promise<void> {
    const { log, random } = this.#deps;
    this.#failures++;
    // A version that is too old is ordinary; only a second one in a row is worth waiting for.
    if (codeOf(error) === 'kube_gone' && this.#failures === 1) return;
    const serverPauseMs = error instanceof AppError ? error.detail.retryAfterMs : undefined;
    const { backoffBaseMs: baseMs, backoffMaxMs: maxMs } = this.#timing;
    const delayMs = Math.max(
      typeof serverPauseMs === 'number' ? serverPauseMs : 0,
      backoffMs(this.#failures - this.#forgiven, { baseMs, maxMs, random }),
      // Its watches may be taken each time, and flooded.
      isTooLarge(error) ? maxMs : 0,
    );
    const fields = { kind: this.type.kind, code: codeOf(error), failures: this.#failures, delayMs };
    // The first failures of a broken connection are ordinary (a restart); more are worth a warning.
    if (this.#failures === alarmingFailures || isTooLarge(error))
      log.error('a cache cannot follow its API server', error, fields);
    else log.debug('a watch was interrupted', fields);
    if (await this.#sleptThrough(delayMs, signal)) return;
    this.#forgiven = this.#failures;
  }

  /** False as soon as the server is known to be back. */
  async #sleptThrough(ms: number, signal: AbortSignal): Promise<boolean> {
    const nap = abortScope(signal);
    const forget = this.#source.outages?.onReturn(() => nap.abort());
    try {
      await this.#deps.clock.sleep(ms, nap.signal);
      return true;
    } catch (error) {
      if (signal.aborted) throw error;
      return false;
    } finally {
      forget?.();
      nap.unlink();
    }
  }
}

/** False: the same version may be watched again, for the server did not speak about it. */
function mustRelist(error: unknown): boolean {
  switch (codeOf(error)) {
    case 'kube_unauthorized':
    case 'kube_forbidden':
      return false;
    case 'kube_unreachable':
    case 'kube_throttled':
      // A version from the future (etcd restored from a backup) is answered as a timeout with this reason.
      return error instanceof AppError && error.detail.reason === 'Timeout';
    default:
      return true;
  }
}
