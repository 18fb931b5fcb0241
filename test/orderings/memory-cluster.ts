/**
 * A cluster in memory with the rules of an API server that matter to offloading: versions, preconditions, finalizers, graceful deletion, terminating
 * namespaces, owners. Its caches lag: each shows changes in their order, but how late, and which of them first, is drawn.
 */
import { jsonPatched } from '#agent/testing/patched.ts';
import { mergePatched } from '#kube/http/testing/merge-patched.ts';
import type { CacheOptions, Caches, Cluster, KubeApi, ListOptions } from '#kube/model/types.ts';
import { type KubeObject, type ObjectRef, type Pod, type ResourceType, refOf } from '#shared/domain/kube-object.ts';
import { AppError, codeOf } from '#shared/errors/app-error.ts';
import type { Clock } from '#shared/ports/clock.ts';
import { isIn, keyOf, LaggingCache, type Loose, same } from './lagging-cache.ts';

/** Draws a number from 0 up to 1. */
export type Random = () => number;
/** May change a new object, or refuse it by throwing. */
export type Admission = (object: Loose) => Loose;

export class MemoryCluster {
  readonly #objects = new Map<string, Loose>();
  readonly #watching = new Map<LaggingCache, string>();
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #admissions = new Map<string, Admission>();
  #serial = 0;
  /** Nothing comes or goes between this cluster and its peers. */
  isCut = false;
  /** Watches of peers come late, while their requests are answered. */
  isUnheard = false;
  /** So do those of this cluster's own clients. */
  isDeaf = false;
  /** Told after every write: `after` is undefined when the object is gone. */
  onWrite: (before: KubeObject, after: KubeObject | undefined) => void = () => undefined;

  constructor(clock: Clock, random: Random) {
    this.#clock = clock;
    this.#random = random;
  }

  admit(kind: string, admission: Admission): void {
    this.#admissions.set(kind, admission);
  }

  /** Everything of a kind, as it is. */
  all<T extends KubeObject>(type: ResourceType<T>): T[] {
    return [...this.#objects.values()].filter(({ kind }) => kind === type.kind) as unknown as T[];
  }

  now<T extends KubeObject>(type: ResourceType<T>, ref: ObjectRef): T | undefined {
    return this.#objects.get(keyOf(type.kind, ref)) as T | undefined;
  }

  get isQuiet(): boolean {
    return !this.#behind().length;
  }

  #behind(): LaggingCache[] {
    return [...this.#watching].flatMap(([cache, side]) =>
      cache.hasNews && !(side === 'peer' ? this.isCut || this.isUnheard : this.isDeaf) ? [cache] : [],
    );
  }

  /** One change or first list of one cache that has any. False: everybody knows everything. */
  deliverOne(): boolean {
    const behind = this.#behind();
    const chosen = behind[Math.floor(this.#random() * behind.length)];
    chosen?.deliver();
    return chosen !== undefined;
  }

  /** A client within the cluster or at a peer. Its caches end with `signal`. */
  open(side: 'own' | 'peer', signal: AbortSignal): Pick<Cluster, 'api' | 'caches' | 'events'> {
    const shared: LaggingCache[] = [];
    const start = (type: ResourceType, options: CacheOptions<Loose>, until: AbortSignal): LaggingCache => {
      const list = () => [...this.#objects.values()].filter(({ kind }) => kind === type.kind);
      const cache = new LaggingCache(type, { ...options }, list);
      if (until.aborted) return cache;
      this.#watching.set(cache, side);
      for (const end of new Set([signal, until]))
        end.addEventListener('abort', () => this.#watching.delete(cache), { once: true });
      return cache;
    };
    const caches = {
      cache: (type: ResourceType, options: CacheOptions<Loose> = {}) => {
        let found = shared.find((cache) => cache.matches(type, options));
        if (!found) {
          found = start(type, options, signal);
          shared.push(found);
        }
        found.addIndexes(options.indexes);
        return found.cache;
      },
      scoped: (type: ResourceType, options: CacheOptions<Loose>, until: AbortSignal) =>
        start(type, options, until).cache,
      synced: async () => undefined,
    } as unknown as Caches;
    return { api: this.#api(side), caches, events: { emit: () => undefined } };
  }

  #api(side: 'own' | 'peer'): KubeApi {
    const reachable = async (): Promise<void> => {
      await undefined;
      if (side === 'peer' && this.isCut) throw new AppError('kube_unreachable', 'the line is cut');
    };
    const api = {
      get: async (type: ResourceType, ref: ObjectRef) => {
        await reachable();
        return structuredClone(this.now(type, ref));
      },
      list: async (type: ResourceType, options: ListOptions = {}) => {
        await reachable();
        return structuredClone(this.all(type)).filter((object) => isIn(object, options));
      },
      create: async (_type: ResourceType, object: Loose) => {
        await reachable();
        return structuredClone(this.create(object));
      },
      update: async (_type: ResourceType, object: Loose) => {
        await reachable();
        return structuredClone(this.#change(object.kind, refOf(object), object.metadata, () => object));
      },
      apply: async (type: ResourceType, object: Loose, { dryRun }: { readonly dryRun?: boolean } = {}) => {
        await reachable();
        if (dryRun) return object;
        const ref = refOf(object);
        if (!this.now(type, ref)) return structuredClone(this.create(object));
        const change = (before: Loose) => mergePatched(before, object) as Loose;
        return structuredClone(this.#change(type.kind, ref, object.metadata, change));
      },
      mergePatch: async (type: ResourceType, ref: ObjectRef, patch: { metadata?: Loose['metadata'] }) => {
        await reachable();
        const change = (before: Loose) => mergePatched(before, patch) as Loose;
        return structuredClone(this.#change(type.kind, ref, patch.metadata ?? {}, change));
      },
      jsonPatch: async (type: ResourceType, ref: ObjectRef, patch: never) => {
        await reachable();
        return structuredClone(this.#change(type.kind, ref, {}, (before) => patched(before, patch)));
      },
      delete: async (
        type: ResourceType,
        ref: ObjectRef,
        options: { uid?: string; gracePeriodSeconds?: number } = {},
      ) => {
        await reachable();
        return this.delete(type, ref, options);
      },
      post: async () => {
        throw new AppError('kube_forbidden', 'nothing is posted here');
      },
      getPath: async () => 'ok',
    };
    return api as unknown as KubeApi;
  }

  create(given: Loose): Loose {
    const ref = refOf(given);
    const at = keyOf(given.kind, ref);
    const { namespace } = given.metadata;
    if (namespace !== undefined && given.kind !== 'Namespace') {
      const home = this.#objects.get(keyOf('Namespace', { name: namespace }));
      if (!home) throw new AppError('kube_not_found', `namespaces "${namespace}" not found`);
      if (home.metadata.deletionTimestamp)
        throw new AppError('kube_forbidden', `namespace ${namespace} is being terminated`);
    }
    if (this.#objects.has(at)) throw new AppError('kube_already_exists', `${at} already exists`);
    const object = this.#admissions.get(given.kind)?.(structuredClone(given)) ?? structuredClone(given);
    this.#serial += 1;
    const { resourceVersion: _, ...metadata } = object.metadata;
    const status = given.kind === 'Pod' ? { status: { phase: 'Pending', ...object.status } } : {};
    const made = { ...object, ...status, metadata: { ...metadata, uid: `uid-${this.#serial}`, generation: 1 } };
    return this.#store(made);
  }

  #change(
    kind: string,
    ref: ObjectRef,
    expected: { readonly uid?: string; readonly resourceVersion?: string },
    change: (before: Loose) => Loose,
  ): Loose {
    const before = this.#objects.get(keyOf(kind, ref));
    if (!before) throw new AppError('kube_not_found', `${kind} ${ref.name} not found`);
    for (const field of ['uid', 'resourceVersion'] as const) {
      if (expected[field] !== undefined && expected[field] !== before.metadata[field])
        throw new AppError('kube_conflict', `${field} of ${kind} ${ref.name} is another`);
    }
    const { uid, resourceVersion, generation = 1, deletionTimestamp } = before.metadata;
    const next = structuredClone(change(before));
    next.metadata = { ...next.metadata, ...(uid && { uid }), ...(resourceVersion && { resourceVersion }), generation };
    if (deletionTimestamp) next.metadata.deletionTimestamp = deletionTimestamp;
    if (same(next, before)) return before;
    if (!same(next.spec, before.spec)) next.metadata.generation = generation + 1;
    const mayGo = next.metadata.deletionTimestamp && !next.metadata.finalizers?.length;
    if (mayGo && before.metadata.finalizers?.length && kind !== 'Namespace') return this.#remove(next);
    return this.#store(next);
  }

  delete(
    type: ResourceType,
    ref: ObjectRef,
    options: { readonly uid?: string; readonly resourceVersion?: string; readonly gracePeriodSeconds?: number } = {},
  ): boolean {
    const { uid, resourceVersion, gracePeriodSeconds } = options;
    const found = this.#objects.get(keyOf(type.kind, ref));
    if (!found || (uid !== undefined && uid !== found.metadata.uid)) return false;
    if (resourceVersion !== undefined && resourceVersion !== found.metadata.resourceVersion)
      throw new AppError('kube_conflict', `${type.kind} ${ref.name} has changed`);
    const isGraceful = found.kind === 'Pod' && found.spec?.nodeName !== undefined && gracePeriodSeconds !== 0;
    if (!isGraceful && !found.metadata.finalizers?.length && found.kind !== 'Namespace') {
      this.#remove(found);
      return true;
    }
    if (!found.metadata.deletionTimestamp)
      this.#store({
        ...found,
        metadata: { ...found.metadata, deletionTimestamp: new Date(this.#clock.now()).toISOString() },
      });
    return true;
  }

  #store(object: Loose): Loose {
    this.#serial += 1;
    const stored = { ...object, metadata: { ...object.metadata, resourceVersion: String(this.#serial) } };
    const key = keyOf(object.kind, refOf(object));
    const before = this.#objects.get(key) ?? stored;
    this.#objects.set(key, stored);
    this.#tell(stored, stored);
    this.onWrite(before, stored);
    return stored;
  }

  #remove(object: Loose): Loose {
    this.#objects.delete(keyOf(object.kind, refOf(object)));
    this.#tell(object, undefined);
    this.onWrite(object, undefined);
    return object;
  }

  #tell({ kind, metadata }: Loose, after: Loose | undefined): void {
    for (const cache of this.#watching.keys())
      if (cache.type.kind === kind)
        cache.hear(
          keyOf(kind, { ...(metadata.namespace && { namespace: metadata.namespace }), name: metadata.name }),
          after,
        );
  }

  /** One round of what Kubernetes itself does: dependents without their owner go, and terminating namespaces empty themselves. */
  collect(): void {
    const uids = new Set([...this.#objects.values()].map(({ metadata }) => metadata.uid));
    for (const object of [...this.#objects.values()]) {
      const type = { kind: object.kind } as ResourceType;
      const { namespace, ownerReferences } = object.metadata;
      const home = namespace === undefined ? undefined : this.#objects.get(keyOf('Namespace', { name: namespace }));
      const isOrphan = ownerReferences?.length && ownerReferences.every(({ uid }) => !uids.has(uid));
      if (isOrphan || home?.metadata.deletionTimestamp) this.delete(type, refOf(object));
    }
    for (const { metadata } of this.all({ kind: 'Namespace' } as ResourceType)) {
      if (!metadata.deletionTimestamp || metadata.finalizers?.length) continue;
      const isEmpty = ![...this.#objects.values()].some((object) => object.metadata.namespace === metadata.name);
      const found = this.#objects.get(keyOf('Namespace', { name: metadata.name }));
      if (isEmpty && found) this.#remove(found);
    }
  }

  /** What kubelets of this cluster do with pods bound to nodes of theirs: run them once what they mount is there, end them when told. */
  kubelets(isOwn: (node: string) => boolean, canStart: (pod: Pod) => boolean): void {
    for (const pod of this.all({ kind: 'Pod' } as ResourceType<Pod>)) {
      if (!isOwn(pod.spec?.nodeName ?? '')) continue;
      const type = { kind: 'Pod' } as ResourceType;
      if (pod.metadata.deletionTimestamp) this.delete(type, refOf(pod), { gracePeriodSeconds: 0 });
      else if (pod.status?.phase === 'Pending' && canStart(pod)) this.#change('Pod', refOf(pod), {}, running);
      else if (pod.status?.phase === 'Running' && pod.spec?.restartPolicy === 'Never')
        this.#change('Pod', refOf(pod), {}, (before) => ({
          ...before,
          status: { ...before.status, phase: 'Succeeded' },
        }));
    }
  }

  bind(pod: Pod, node: string): void {
    this.#change('Pod', refOf(pod), {}, (before) => ({ ...before, spec: { ...before.spec, nodeName: node } }));
  }

  /** What a part of Kubernetes writes that has just read the object. */
  replace(object: KubeObject): void {
    this.#change(object.kind, refOf(object), {}, () => object as Loose);
  }

  replaceSpec(object: Loose): void {
    this.#change(object.kind, refOf(object), {}, (before) => ({
      ...before,
      ...object,
      metadata: { ...before.metadata, ...object.metadata },
      ...(before.status && { status: before.status }),
    }));
  }

  setStatus(object: KubeObject, status: unknown): void {
    this.#change(object.kind, refOf(object), {}, (before) => ({
      ...before,
      status: status as Record<string, unknown>,
    }));
  }
}

const running = (before: Loose): Loose => ({
  ...before,
  status: {
    phase: 'Running',
    podIP: '10.9.9.9',
    conditions: ['PodScheduled', 'Initialized', 'ContainersReady', 'Ready'].map((type) => ({ type, status: 'True' })),
    containerStatuses: [{ name: 'app', ready: true, restartCount: 0, image: 'app:1', imageID: 'app' }],
  },
});

const stepsOf = (path: string): string[] =>
  path
    .split('/')
    .slice(1)
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'));
const at = (object: unknown, path: string): unknown =>
  stepsOf(path).reduce<unknown>((inside, step) => (inside as Record<string, unknown> | undefined)?.[step], object);

/** RFC 6902, elements of lists included. */
function patched(before: Loose, patch: readonly { op: string; path: string; value?: unknown }[]): Loose {
  try {
    return patch.reduce<Loose>((object, operation) => {
      const [, list = '', index = ''] = /^(.+)\/(\d+|-)$/.exec(operation.path) ?? [];
      if (list === '' || !Array.isArray(at(object, list))) return jsonPatched(object, [operation as never]);
      const copy = structuredClone(object);
      const elements = at(copy, list) as unknown[];
      const place = index === '-' ? elements.length : Number(index);
      if (operation.op === 'remove') elements.splice(place, 1);
      else if (operation.op === 'add') elements.splice(place, 0, operation.value);
      else if (operation.op === 'replace') elements[place] = operation.value;
      return copy;
    }, before);
  } catch (error) {
    throw codeOf(error) ? error : new AppError('kube_invalid', String(error));
  }
}
