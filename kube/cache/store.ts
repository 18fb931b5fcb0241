/** The objects of one cache, by key and by index, and the subscribers to its changes. */
import { isDeepStrictEqual } from 'node:util';
import { type KubeObject, keyOf } from '#shared/domain/kube-object.ts';
import type { Change } from '../model/types.ts';

export type IndexFn<T> = (object: T) => readonly string[];
type Listener<T extends KubeObject> = (change: Change<T>) => void;

/** Most index values have one object: then the key itself stands in the bucket's place. */
type Bucket = string | Set<string>;

export class Store<T extends KubeObject> {
  readonly #objects = new Map<string, T>();
  readonly #indexes = new Map<string, { readonly of: IndexFn<T>; readonly buckets: Map<string, Bucket> }>();
  readonly #listeners = new Set<Listener<T>>();
  readonly #onListenerError: (error: unknown) => void;
  readonly #notifiesVersions: boolean;
  #listed: readonly T[] | undefined;

  /**
   * An error in one listener does not keep the others from being called. `tellsVersions`: a new version of the same content counts as a change, too.
   */
  constructor(onListenerError: (error: unknown) => void, notifiesVersions = true) {
    this.#onListenerError = onListenerError;
    this.#notifiesVersions = notifiesVersions;
  }

  get(key: string): T | undefined {
    return this.#objects.get(key);
  }

  list(): readonly T[] {
    this.#listed ??= [...this.#objects.values()];
    return this.#listed;
  }

  addIndex(name: string, of: IndexFn<T>): void {
    const index = { of, buckets: new Map<string, Bucket>() };
    this.#indexes.set(name, index);
    for (const [key, object] of this.#objects) for (const value of of(object)) insert(index.buckets, value, key);
  }

  index(name: string): IndexFn<T> | undefined {
    return this.#indexes.get(name)?.of;
  }

  byIndex(name: string, value: string): readonly T[] {
    const index = this.#indexes.get(name);
    if (index === undefined) throw new TypeError(`the cache has no index ${JSON.stringify(name)}`);
    const bucket = index.buckets.get(value);
    if (bucket === undefined) return [];
    const keys = typeof bucket === 'string' ? [bucket] : [...bucket];
    return keys.flatMap((key) => this.#objects.get(key) ?? []);
  }

  subscribe(listener: Listener<T>): () => void {
    this.#listeners.add(listener);
    for (const after of this.list()) this.#notify(listener, { after });
    return () => void this.#listeners.delete(listener);
  }

  silence(): void {
    this.#listeners.clear();
  }

  /** An object of another incarnation (uid) under the same key is a removal and then an addition. */
  put(object: T): void {
    const key = keyOf(object);
    const before = this.#objects.get(key);
    if (before !== undefined && before.metadata.uid !== object.metadata.uid) {
      this.remove(key);
      this.#set(key, undefined, object);
    } else if (before?.metadata.resourceVersion !== object.metadata.resourceVersion || before === undefined) {
      this.#set(key, before, object);
    }
  }

  /** With `uid`: only that incarnation. */
  remove(key: string, uid?: string): void {
    const before = this.#objects.get(key);
    if (before === undefined || (uid !== undefined && before.metadata.uid !== uid)) return;
    this.#objects.delete(key);
    this.#unindex(key, before);
    this.#emit({ before });
  }

  /** Makes the content equal to `objects`; all others are reported as removed. */
  replace(objects: ReadonlyMap<string, T>): void {
    for (const key of [...this.#objects.keys()]) if (!objects.has(key)) this.remove(key);
    for (const object of objects.values()) this.put(object);
  }

  #set(key: string, before: T | undefined, after: T): void {
    if (before !== undefined && !this.#notifiesVersions && isSame(before, after)) {
      this.#objects.set(key, after);
      this.#listed = undefined;
      return;
    }
    if (before !== undefined) this.#unindex(key, before);
    this.#objects.set(key, after);
    for (const { of, buckets } of this.#indexes.values()) for (const value of of(after)) insert(buckets, value, key);
    this.#emit(before === undefined ? { after } : { before, after });
  }

  #unindex(key: string, object: T): void {
    for (const { of, buckets } of this.#indexes.values()) for (const value of of(object)) drop(buckets, value, key);
  }

  #emit(change: Change<T>): void {
    this.#listed = undefined;
    for (const listener of this.#listeners) this.#notify(listener, change);
  }

  #notify(listener: Listener<T>, change: Change<T>): void {
    try {
      listener(change);
    } catch (error) {
      this.#onListenerError(error);
    }
  }
}

/** Whether only the version differs, as of heartbeats that a transform has dropped: subscribers are not called for that. */
function isSame<T extends KubeObject>(before: T, after: T): boolean {
  const { metadata: was, ...had } = before;
  const { metadata: is, ...has } = after;
  return (
    isDeepStrictEqual({ ...was, resourceVersion: '' }, { ...is, resourceVersion: '' }) && isDeepStrictEqual(had, has)
  );
}

function insert(buckets: Map<string, Bucket>, value: string, key: string): void {
  const bucket = buckets.get(value);
  if (bucket === undefined || bucket === key) buckets.set(value, key);
  else if (typeof bucket === 'string') buckets.set(value, new Set([bucket, key]));
  else bucket.add(key);
}

function drop(buckets: Map<string, Bucket>, value: string, key: string): void {
  const bucket = buckets.get(value);
  if (bucket === key) buckets.delete(value);
  else if (bucket instanceof Set) {
    bucket.delete(key);
    const [last] = bucket;
    if (bucket.size === 1 && last !== undefined) buckets.set(value, last);
  }
}
