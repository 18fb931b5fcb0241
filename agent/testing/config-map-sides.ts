/** API servers that remember ConfigMaps and keep the rules that matter to reflection (field ownership, preconditions, immutability), and caches of them that lag. */
import { isDeepStrictEqual } from 'node:util';
import type { Cache, CacheOptions, Change, KubeApi } from '#kube/model/types.ts';
import type { ConfigMap, ObjectRef } from '#shared/domain/kube-object.ts';
import { AppError } from '#shared/errors/app-error.ts';

type Fields = Record<string, string>;
type Part = 'data' | 'labels' | 'annotations';
interface Stored {
  readonly object: ConfigMap;
  /** What our manager applied last. */
  readonly applied?: ConfigMap | undefined;
}

const partOf = (object: ConfigMap | undefined, part: Part): Fields =>
  (part === 'data' ? object?.data : object?.metadata[part]) ?? {};

export class Side {
  readonly #stored = new Map<string, Stored>();
  writes = 0;
  #serial = 0;

  list(): ConfigMap[] {
    return [...this.#stored.values()].map(({ object }) => object);
  }

  get(name: string): ConfigMap | undefined {
    return this.#stored.get(name)?.object;
  }

  /** As a user or a third party would: replaces these members, keeps the uid. */
  put(
    name: string,
    namespace: string,
    body: Partial<Omit<ConfigMap, 'metadata'>> & { readonly metadata?: Partial<ConfigMap['metadata']> },
  ): void {
    const before = this.#stored.get(name);
    const uid = before?.object.metadata.uid ?? this.#next('uid');
    const metadata = { ...before?.object.metadata, ...body.metadata, name, namespace, uid };
    const object = { ...before?.object, ...body, apiVersion: 'v1', kind: 'ConfigMap', metadata } as ConfigMap;
    this.#keep(name, { object, applied: before?.applied });
  }

  remove(name: string): void {
    this.#stored.delete(name);
  }

  #next(what: string): string {
    this.#serial++;
    return `${what}-${this.#serial}`;
  }

  #keep(name: string, { object, applied }: Stored): void {
    const before = this.#stored.get(name)?.object;
    const plain = (one: ConfigMap | undefined) => one && { ...one, metadata: { ...one.metadata, resourceVersion: '' } };
    if (before && isDeepStrictEqual(plain(before), plain(object)))
      return void this.#stored.set(name, { object: before, applied });
    this.#stored.set(name, {
      object: { ...object, metadata: { ...object.metadata, resourceVersion: this.#next('v') } },
      applied,
    });
  }

  #apply(wanted: ConfigMap, createOnly: boolean): ConfigMap {
    const { name, namespace = '' } = wanted.metadata;
    const before = this.#stored.get(name);
    if (before && createOnly) throw new AppError('kube_conflict', `${name} exists`);
    const own = (part: Part): Fields => partOf(before?.applied, part);
    const merged = (part: Part): Fields => {
      const have = partOf(before?.object, part);
      const want = partOf(wanted, part);
      const kept = Object.entries(have).filter(([key]) => !(key in own(part)) || key in want);
      return { ...Object.fromEntries(kept), ...want };
    };
    const data = merged('data');
    if (before?.object.immutable && (!wanted.immutable || !isDeepStrictEqual(before.object.data ?? {}, data))) {
      throw new AppError('kube_invalid', `${name} is immutable`);
    }
    const metadata = {
      ...before?.object.metadata,
      name,
      namespace,
      uid: before?.object.metadata.uid ?? this.#next('uid'),
      labels: merged('labels'),
      annotations: merged('annotations'),
    };
    const immutable = wanted.immutable ?? (before?.applied?.immutable ? undefined : before?.object.immutable);
    const object = {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata,
      data,
      ...(immutable ? { immutable } : {}),
    } as ConfigMap;
    this.#keep(name, { object, applied: wanted });
    return object;
  }

  readonly api = {
    get: async (_: unknown, { name }: ObjectRef) => structuredClone(this.get(name)),
    apply: async (_: unknown, object: ConfigMap, { createOnly = false }: { readonly createOnly?: boolean }) => {
      this.writes++;
      return this.#apply(structuredClone(object), createOnly);
    },
    delete: async (_: unknown, { name }: ObjectRef, { uid }: { readonly uid?: string } = {}) => {
      this.writes++;
      if (uid !== undefined && this.get(name)?.metadata.uid !== uid) return false;
      return this.#stored.delete(name);
    },
  } as unknown as KubeApi;
}

/** Shows what the side had at the last `catchUp`. */
export class LaggingCache {
  readonly #side: Side;
  readonly #transform: (object: ConfigMap) => ConfigMap;
  readonly #listeners = new Set<(change: Change<ConfigMap>) => void>();
  #shown = new Map<string, ConfigMap>();

  constructor(side: Side, { transform = (object) => object }: CacheOptions<ConfigMap>) {
    this.#side = side;
    this.#transform = transform;
    this.catchUp(false);
  }

  /** `heard`: whether subscribers are told; a watch may have been broken meanwhile. */
  catchUp(heard: boolean): void {
    const before = this.#shown;
    this.#shown = new Map(
      this.#side.list().map((object) => [object.metadata.name, this.#transform(structuredClone(object))]),
    );
    if (!heard) return;
    for (const name of new Set([...before.keys(), ...this.#shown.keys()])) {
      const change = { before: before.get(name), after: this.#shown.get(name) };
      if (change.before?.metadata.resourceVersion === change.after?.metadata.resourceVersion) continue;
      for (const listener of this.#listeners) listener(change as Change<ConfigMap>);
    }
  }

  readonly cache = {
    get: ({ name }: ObjectRef) => this.#shown.get(name),
    list: () => [...this.#shown.values()],
    byIndex: () => [],
    isSynced: () => true,
    synced: async () => undefined,
    subscribe: (listener: (change: Change<ConfigMap>) => void) => {
      this.#listeners.add(listener);
      return () => this.#listeners.delete(listener);
    },
    ageMs: () => 0,
  } as unknown as Cache<ConfigMap>;
}
