/** A cache that shows what its server tells it in that order, and as late as its owner delivers it. */
import type { Cache, CacheOptions, Change, ListOptions } from '#kube/model/types.ts';
import { type KubeObject, type ObjectRef, type ResourceType, refOf } from '#shared/domain/kube-object.ts';
import { selects } from '#test/harness/label-selector.ts';

export type Loose = KubeObject & { spec?: Record<string, unknown>; status?: Record<string, unknown> };

export const keyOf = (kind: string, { namespace, name }: ObjectRef): string => `${kind}/${namespace ?? ''}/${name}`;

export const same = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);

export function isIn(object: Loose, { namespace, labelSelector, fieldSelector }: ListOptions): boolean {
  if (namespace !== undefined && object.metadata.namespace !== namespace) return false;
  const [, field, value] = /^([^=]+)=(.*)$/.exec(fieldSelector ?? '') ?? [];
  if (field === 'spec.nodeName' && (object.spec?.nodeName ?? '') !== value) return false;
  if (field === 'metadata.name' && object.metadata.name !== value) return false;
  return selects(labelSelector, object.metadata.labels);
}

/** What of its server a cache has been told, and what it will be told next. */
export class LaggingCache {
  readonly type: ResourceType;
  readonly #options: CacheOptions<Loose>;
  readonly #listNow: () => readonly Loose[];
  readonly #shown = new Map<string, Loose>();
  readonly #listeners = new Set<(change: Change<Loose>) => void>();
  readonly #pending: { readonly key: string; readonly object: Loose | undefined }[] = [];
  readonly #waiting: (() => void)[] = [];
  #isSynced = false;

  constructor(type: ResourceType, options: CacheOptions<Loose>, listNow: () => readonly Loose[]) {
    this.type = type;
    this.#options = options;
    this.#listNow = listNow;
  }

  matches(type: ResourceType, options: CacheOptions<Loose>): boolean {
    const selection = ({ namespace, labelSelector, fieldSelector }: ListOptions) => [
      namespace,
      labelSelector,
      fieldSelector,
    ];
    return (
      type.kind === this.type.kind &&
      same(selection(options), selection(this.#options)) &&
      options.transform === this.#options.transform
    );
  }

  addIndexes(indexes: CacheOptions<Loose>['indexes'] = {}): void {
    Object.assign(this.#options, { indexes: { ...this.#options.indexes, ...indexes } });
  }

  /** Before the first list nothing needs to be kept: the list will show it. */
  hear(key: string, object: Loose | undefined): void {
    if (this.#isSynced) this.#pending.push({ key, object });
  }

  get hasNews(): boolean {
    return !this.#isSynced || this.#pending.length > 0;
  }

  /** The first list, or the next change. */
  deliver(): void {
    if (this.#isSynced) {
      const next = this.#pending.shift();
      if (next) this.#show(next.key, next.object);
      return;
    }
    for (const object of this.#listNow()) this.#show(keyOf(object.kind, refOf(object)), object);
    this.#isSynced = true;
    for (const tell of this.#waiting.splice(0)) tell();
  }

  #show(key: string, object: Loose | undefined): void {
    const before = this.#shown.get(key);
    const visible = object && isIn(object, this.#options) ? structuredClone(object) : undefined;
    const after = visible && (this.#options.transform?.(visible) ?? visible);
    if (after) this.#shown.set(key, after);
    else this.#shown.delete(key);
    if (!before && !after) return;
    // Another incarnation under the same name: the one goes before the other comes.
    const isReplaced = before && after && before.metadata.uid !== after.metadata.uid;
    const changes = isReplaced ? [{ before }, { after }] : [{ ...(before && { before }), ...(after && { after }) }];
    for (const change of changes) for (const listener of [...this.#listeners]) listener(change);
  }

  readonly cache: Omit<Cache<KubeObject>, 'type'> = {
    get: (ref) => this.#shown.get(keyOf(this.type.kind, ref)),
    list: () => [...this.#shown.values()],
    byIndex: (index, value) =>
      [...this.#shown.values()].filter((object) => this.#options.indexes?.[index]?.(object).includes(value)),
    synced: (signal) =>
      new Promise((resolve, reject) => {
        if (this.#isSynced) return resolve();
        this.#waiting.push(resolve);
        signal?.addEventListener('abort', () => reject(signal.reason), { once: true });
      }),
    isSynced: () => this.#isSynced,
    subscribe: (listener) => {
      this.#listeners.add(listener as (change: Change<Loose>) => void);
      for (const after of [...this.#shown.values()]) listener({ after });
      return () => this.#listeners.delete(listener as (change: Change<Loose>) => void);
    },
    ageMs: () => 0,
  };
}
