/**
 * Own writes over an informer's cache, against cache lag: between the answer to a write and its watch event the cache shows the state before it.
 * client-go calls this a mutation cache. Of what this process wrote and what the cache shows, the newer one counts, by `metadata.resourceVersion`:
 * within one resource type of one API server versions compare as integers, across objects, too. A cached object whose version is no integer counts as
 * newer. Each event and each read costs O(1).
 */
import { type KubeObject, keyOf, type ObjectRef } from '#shared/domain/kube-object.ts';
import type { Clock } from '#shared/ports/clock.ts';
import type { Cache, Change } from '../model/types.ts';
import { PendingEntries } from './pending-entries.ts';

export interface OwnWritesOptions {
  readonly clock: Pick<Clock, 'now'>;
  /**
   * How long a write counts. It must end some time: an object that was created and deleted between two lists never comes by a watch, and an etcd that was
   * restored from a backup counts versions from an older one. Two minutes unless told: a watch that died in silence is noticed after 90 s.
   */
  readonly lifetimeMs?: number;
}

interface Write<T> {
  readonly object: T;
  /** The API server said that this incarnation is gone. */
  readonly isGone: boolean;
  /** A cache has shown this incarnation, or a later one: from then on absence means deletion, in a cache that was opened since, too. */
  isShown: boolean;
}

/** A set of uids of objects, each of which leaves the set with its object: as bounded as the cache. */
export interface UidSet {
  /** Without effect for an object whose deletion came already. */
  add(uid: string): void;
  has(uid: string): boolean;
  /** False: it was not in the set. */
  delete(uid: string): boolean;
}

const defaultLifetimeMs = 120_000;
/** A uid never comes back, so what is remembered as gone needs no deadline, only a bound: of older ones the API server has to be asked. */
const mostGone = 10_000;

export class OwnWrites<T extends KubeObject> {
  readonly #clock: Pick<Clock, 'now'>;
  readonly #writes: PendingEntries<Write<T>>;
  readonly #gone = new Set<string>();
  readonly #sets: Set<string>[] = [];

  constructor({ clock, lifetimeMs = defaultLifetimeMs }: OwnWritesOptions) {
    this.#clock = clock;
    this.#writes = new PendingEntries(lifetimeMs);
  }

  /** Learns of deletions from this cache until `signal` aborts. Caches of several namespaces may be followed at a time. */
  follow(cache: Pick<Cache<T>, 'subscribe'>, signal?: AbortSignal): void {
    if (signal?.aborted) return;
    const unsubscribe = cache.subscribe((change) => this.#hear(change));
    signal?.addEventListener('abort', unsubscribe, { once: true });
  }

  /** This process created or changed the object, and this is the API server's answer, or what a cache would keep of it. */
  wrote(object: T): void {
    const { uid } = object.metadata;
    const key = keyOf(object);
    const now = this.#clock.now();
    const earlier = this.#writes.get(key, now);
    // Of two writes whose answers came in the wrong order, the newer one counts.
    if (earlier !== undefined && isNewer(earlier.object, object)) return;
    if (earlier?.isGone && earlier.object.metadata.uid === uid) return;
    // The watch event of its deletion can have overtaken the answer.
    const hasEnded = uid !== undefined && this.#gone.has(uid);
    const isShown = hasEnded || (earlier?.isShown === true && earlier.object.metadata.uid === uid);
    this.#writes.set(key, { object, isGone: false, isShown }, now);
  }

  /** The API server said that this incarnation is gone; not before, since a finalizer or a grace period can keep a deleted object. */
  deleted(object: T): void {
    const { uid } = object.metadata;
    const key = keyOf(object);
    const now = this.#clock.now();
    const earlier = this.#writes.get(key, now)?.object;
    if (earlier !== undefined && earlier.metadata.uid !== uid && isNewer(earlier, object)) return;
    const last = earlier !== undefined && isNewer(earlier, object) ? earlier : object;
    this.#writes.set(key, { object: last, isGone: true, isShown: true }, now);
    if (uid !== undefined) this.#bury(uid);
  }

  /** The object as this process last wrote it, or as the cache shows it, whichever is newer. */
  get(cache: Pick<Cache<T>, 'get'>, ref: ObjectRef): T | undefined {
    const cached = cache.get(ref);
    const write = this.#writes.get(keyOfRef(ref), this.#clock.now());
    return write === undefined ? cached : this.#over(cached, write);
  }

  /** The objects of this cache, and what was written in its namespace (of all: undefined) and is not in it yet. */
  list(cache: Pick<Cache<T>, 'get' | 'list'>, namespace?: string): readonly T[] {
    const writes = this.#writes
      .list(this.#clock.now())
      .filter(([, { object }]) => namespace === undefined || object.metadata.namespace === namespace);
    if (writes.length === 0) return cache.list();
    const objects = new Map(cache.list().map((object) => [keyOf(object), object]));
    for (const [key, write] of writes) {
      const object = this.#over(objects.get(key), write);
      if (object === undefined) objects.delete(key);
      else objects.set(key, object);
    }
    return [...objects.values()];
  }

  /** Whether `get` says something other than the cache, whose event is still to come. */
  isAhead(cache: Pick<Cache<T>, 'get'>, ref: ObjectRef): boolean {
    return this.get(cache, ref) !== cache.get(ref);
  }

  /** Whether the end of this incarnation is known, from a watch event or from the API server's answer. False: it may be there. */
  isGone(uid: string): boolean {
    return this.#gone.has(uid);
  }

  /** Follow a cache, or the set only grows. */
  uids(): UidSet {
    const uids = new Set<string>();
    this.#sets.push(uids);
    return {
      add: (uid) => {
        if (!this.#gone.has(uid)) uids.add(uid);
      },
      has: (uid) => uids.has(uid),
      delete: (uid) => uids.delete(uid),
    };
  }

  #over(cached: T | undefined, { object, isGone, isShown }: Write<T>): T | undefined {
    const { uid } = object.metadata;
    const hasEnded = isGone || (uid !== undefined && this.#gone.has(uid));
    if (cached === undefined) return isShown || hasEnded ? undefined : object;
    if (isGone && cached.metadata.uid === uid) return undefined;
    if (!isNewer(object, cached)) return cached;
    return hasEnded ? undefined : object;
  }

  #hear({ before, after }: Change<T>): void {
    const [was, is] = [before?.metadata.uid, after?.metadata.uid];
    // A list from an API server that is behind can lose an object that the next event shows again.
    if (is !== undefined) this.#gone.delete(is);
    if (was !== undefined && was !== is) this.#bury(was);
    const write = after && this.#writes.get(keyOf(after), this.#clock.now());
    if (write && (write.object.metadata.uid === is || isNewer(after, write.object))) write.isShown = true;
  }

  #bury(uid: string): void {
    this.#gone.add(uid);
    for (const uids of this.#sets) uids.delete(uid);
    const [oldest] = this.#gone;
    if (this.#gone.size > mostGone && oldest !== undefined) this.#gone.delete(oldest);
  }
}

const keyOfRef = ({ namespace, name }: ObjectRef): string => (namespace === undefined ? name : `${namespace}/${name}`);

const integer = /^[1-9]\d*$/;

/** Compared as digits: versions have up to 64 bits. False unless both are integers. */
function isNewer(one: KubeObject, other: KubeObject): boolean {
  const [a = '', b = ''] = [one.metadata.resourceVersion, other.metadata.resourceVersion];
  if (!integer.test(a) || !integer.test(b)) return false;
  return a.length === b.length ? a > b : a.length > b.length;
}
