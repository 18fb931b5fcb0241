/** The ports through which everything in the agent reaches an API server. Implementations: `api.ts`, `informer.ts`; contract tests run on a real API server. */
import type { KubeObject, ObjectMeta, ObjectRef, ResourceType } from '#shared/domain/kube-object.ts';
import type { Outcome } from '#shared/domain/outcome.ts';
import type { ControllerMetrics } from './metrics.ts';

export interface ListOptions {
  /** Absent: all namespaces (or a cluster-scoped kind). */
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
}

export interface CollectOptions extends ListOptions {
  /** Objects per page, all of which are in memory at once; default 50. More for small objects: each page is a round trip. */
  readonly pageSize?: number;
}

export interface DeleteOptions {
  /** Precondition: delete only this incarnation; a different one counts as absent. */
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly gracePeriodSeconds?: number;
  readonly propagationPolicy?: 'Background' | 'Foreground' | 'Orphan';
}

export type Subresource =
  | 'status'
  | 'approval'
  | 'binding'
  | 'eviction'
  | 'token'
  | 'scale'
  | 'resize'
  | 'ephemeralcontainers';

/** An object to server-side apply: the fields that we own. */
export type Applied<T extends KubeObject> = Pick<T, 'apiVersion' | 'kind'> & {
  metadata: Pick<ObjectMeta, 'name'> & Partial<ObjectMeta>;
} & { [K in Exclude<keyof T, 'apiVersion' | 'kind' | 'metadata'>]?: DeepPartial<T[K]> };
type DeepPartial<T> = T extends readonly (infer U)[]
  ? DeepPartial<U>[]
  : T extends object
    ? { [K in keyof T]?: DeepPartial<T[K]> | undefined }
    : T;

export interface WriteOptions {
  readonly subresource?: Subresource;
  /** `metadata`: the answer has only kind and metadata, for callers that read nothing else. Default: the whole object. */
  readonly answer?: 'metadata';
}

interface ApplyOptions extends WriteOptions {
  /** The owner of the fields. */
  readonly fieldManager: string;
  /** Fail with `kube_conflict` when there is an object of that name already, with any owner; default false. */
  readonly createOnly?: boolean;
  /** A dry run: the request is checked in full, and nothing is stored; default false. */
  readonly dryRun?: boolean;
}

/**
 * Typed requests to one API server. Every method has a deadline (10 s unless the signal aborts first). Failures are `AppError` with a
 * code `kube_*` (see shared/errors): `kube_unreachable` and `kube_throttled` are retryable, `kube_conflict` means re-read first,
 * `kube_invalid`, `kube_forbidden`, `kube_already_exists` and `kube_not_found` speak for themselves. Objects come without `managedFields`.
 */
export interface KubeApi {
  /** Undefined when absent. */
  get<T extends KubeObject>(type: ResourceType<T>, ref: ObjectRef, signal?: AbortSignal): Promise<T | undefined>;
  /** All matching objects, read in pages. */
  list<T extends KubeObject>(type: ResourceType<T>, options?: ListOptions, signal?: AbortSignal): Promise<T[]>;
  /**
   * What `keep` gives of each matching object, without those of which it gives nothing. Objects are read in small pages and forgotten: for kinds of which a
   * cluster has thousands, where little of them matters. `keep` may see an object twice.
   */
  collect<T extends KubeObject, R>(
    type: ResourceType<T>,
    keep: (object: T) => R | undefined,
    options?: CollectOptions,
    signal?: AbortSignal,
  ): Promise<R[]>;
  create<T extends KubeObject>(
    type: ResourceType<T>,
    object: T,
    options?: WriteOptions,
    signal?: AbortSignal,
  ): Promise<T>;
  /** PUT; conditional when `metadata.resourceVersion` is set. */
  update<T extends KubeObject>(
    type: ResourceType<T>,
    object: T,
    options?: WriteOptions,
    signal?: AbortSignal,
  ): Promise<T>;
  /** Server-side apply: creates or updates. */
  apply<T extends KubeObject>(
    type: ResourceType<T>,
    object: Applied<T>,
    options: ApplyOptions,
    signal?: AbortSignal,
  ): Promise<T>;
  /** RFC 7386 merge patch. Fails with `kube_not_found` when absent. */
  mergePatch<T extends KubeObject>(
    type: ResourceType<T>,
    ref: ObjectRef,
    patch: unknown,
    options?: WriteOptions,
    signal?: AbortSignal,
  ): Promise<T>;
  /** RFC 6902 patch; include a `test` operation to make it conditional. */
  jsonPatch<T extends KubeObject>(
    type: ResourceType<T>,
    ref: ObjectRef,
    patch: readonly unknown[],
    options?: WriteOptions,
    signal?: AbortSignal,
  ): Promise<T>;
  /** POST to a subresource that answers with another kind (token, eviction, binding). */
  post<T extends KubeObject, R>(
    type: ResourceType<T>,
    ref: ObjectRef,
    subresource: Subresource,
    body: unknown,
    signal?: AbortSignal,
  ): Promise<R>;
  /** False when it was absent already (or another incarnation than `options.uid`). */
  delete<T extends KubeObject>(
    type: ResourceType<T>,
    ref: ObjectRef,
    options?: DeleteOptions,
    signal?: AbortSignal,
  ): Promise<boolean>;
  /** Field managers that applied parts of the object; none when it is absent. Asks the API server. */
  appliers(type: ResourceType, ref: ObjectRef, signal?: AbortSignal): Promise<readonly string[]>;
  /** GET of a path that is no object, as text: `/livez`, `/version`. */
  getPath(path: string, signal?: AbortSignal): Promise<string>;
  /** POST of a review object (SubjectAccessReview, TokenReview, …) at its full path. */
  postPath<R>(path: string, body: unknown, signal?: AbortSignal): Promise<R>;
}

/**
 * Drops unused fields before an object is stored; must be pure and idempotent. May return the same object, changed. A change of dropped fields only
 * does not call the subscribers.
 */
export type Transform<T extends KubeObject> = (object: T) => T;

export interface CacheOptions<T extends KubeObject> extends ListOptions {
  readonly transform?: Transform<T>;
  /** Index name to the index values of an object. */
  readonly indexes?: Readonly<Record<string, (object: T) => readonly string[]>>;
}

/** A change that a cache saw. `before` and `after` are both present for updates. Only a hint: read the cache. */
export interface Change<T extends KubeObject> {
  readonly before?: T;
  readonly after?: T;
}

/** A list-watch kept in memory. Objects are frozen by convention: never mutate what a cache returns. */
export interface Cache<T extends KubeObject> {
  readonly type: ResourceType<T>;
  get(ref: ObjectRef): T | undefined;
  list(): readonly T[];
  byIndex(index: string, value: string): readonly T[];
  /** Resolves after the first complete list. */
  synced(signal?: AbortSignal): Promise<void>;
  isSynced(): boolean;
  /** Calls back for each object already known (as additions) and each later change; returns the unsubscribe function. */
  subscribe(listener: (change: Change<T>) => void): () => void;
  /** Milliseconds since the last event or bookmark: health. */
  ageMs(): number;
}

/** Shares list-watches of one API server: the same type and options give the same cache. Stops all when its signal aborts. */
export interface Caches {
  cache<T extends KubeObject>(type: ResourceType<T>, options?: CacheOptions<T>): Cache<T>;
  /** A cache of its own that stops with `signal`: for peers and namespaces that come and go. */
  scoped<T extends KubeObject>(type: ResourceType<T>, options: CacheOptions<T>, signal: AbortSignal): Cache<T>;
  synced(signal?: AbortSignal): Promise<void>;
}

/** Everything a controller gets about one cluster. */
export interface Cluster {
  readonly api: KubeApi;
  readonly caches: Caches;
  readonly events: EventRecorder;
}

/** Writes Kubernetes Events, aggregated: the same (object, type, reason, message) within 10 minutes is one series. Never throws. */
export interface EventRecorder {
  emit(regarding: KubeObject, type: 'Normal' | 'Warning', reason: string, message: string): void;
}

export interface Watch<T extends KubeObject = KubeObject> {
  readonly cache: Cache<T>;
  /** The keys that a change of this object makes worth another look. */
  readonly keys: (object: T) => Iterable<string>;
}

export interface ControllerOptions {
  readonly name: string;
  /** Build with `watch(cache, keys)`. */
  readonly watches: readonly Watch[];
  /** Parallel keys; one key is never worked on twice at a time. Default 2. */
  readonly workers?: number;
  /** Bounds how long a lost event can matter. Default 5 minutes, jittered. */
  readonly resyncMs?: number;
  /** The owner of a key in the fair queue: an owner with many waiting keys delays other owners by one key only. */
  readonly ownerOf?: (key: string) => string;
  /** Throwing means retry with per-key back-off (50 ms doubling to 60 s). */
  readonly reconcile: (key: string, signal: AbortSignal) => Promise<Outcome>;
}

export interface Controller {
  readonly name: string;
  /** Looks at this key as soon as a worker is free. */
  enqueue(key: string): void;
  /** From now on these are told of passes. */
  measure(metrics: ControllerMetrics): void;
  /** Returns when the signal aborts and the running passes have ended. */
  run(signal: AbortSignal): Promise<void>;
}
