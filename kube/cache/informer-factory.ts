/** Hands out caches: one list-watch per kind and selection, shared by all callers with the same selection. */
import { abortsWith, sharedByMany } from '#shared/async/abort-scope.ts';
import { apiVersionOf, type KubeObject, type ResourceType } from '#shared/domain/kube-object.ts';
import type { ClusterConnection } from '../http/connection.ts';
import { createRetryingClient } from '../http/retrying-client.ts';
import type { Cache, CacheOptions, Caches } from '../model/types.ts';
import { defaultTiming, Informer, type InformerDeps, type InformerTiming } from './informer.ts';
import { createListWatch } from './list-watch.ts';

export interface CachesOptions {
  readonly pageSize?: number;
  readonly timing?: Partial<InformerTiming>;
}

interface Shared {
  readonly selection: string;
  readonly transform: unknown;
  readonly informer: Informer<KubeObject>;
}

/** All caches stop when `signal` aborts. */
export function createCaches(
  connection: ClusterConnection,
  deps: InformerDeps,
  signal: AbortSignal,
  { pageSize = 500, timing: given = {} }: CachesOptions = {},
): Caches {
  const timing: InformerTiming = { ...defaultTiming, ...given };
  const send = createRetryingClient(connection, deps);
  const shared: Shared[] = [];

  function start<T extends KubeObject>(
    type: ResourceType<T>,
    options: CacheOptions<T>,
    until: AbortSignal,
  ): Informer<T> {
    const source = createListWatch(connection, send, deps.clock, type, options, pageSize);
    const informer = new Informer(type, source, options, deps, timing);
    void informer.run(sharedByMany(until));
    return informer;
  }

  return {
    cache<T extends KubeObject>(type: ResourceType<T>, options: CacheOptions<T> = {}): Cache<T> {
      const selection = selectionOf(type, options);
      const wanted = Object.entries(options.indexes ?? {});
      const found = shared.find((entry) => {
        if (entry.selection !== selection || entry.transform !== options.transform) return false;
        const informer = entry.informer as unknown as Informer<T>;
        return wanted.every(([name, of]) => [undefined, of].includes(informer.index(name)));
      });
      if (found === undefined) {
        const informer = start(type, options, signal);
        const erased = informer as unknown as Informer<KubeObject>;
        shared.push({ selection, transform: options.transform, informer: erased });
        return informer;
      }
      const informer = found.informer as unknown as Informer<T>;
      for (const [name, of] of wanted) if (informer.index(name) === undefined) informer.addIndex(name, of);
      return informer;
    },
    scoped: (type, options, until) => start(type, options, abortsWith(signal, until)),
    async synced(until) {
      await Promise.all(shared.map(({ informer }) => informer.synced(until)));
    },
  };
}

const selectionOf = <T extends KubeObject>(type: ResourceType<T>, options: CacheOptions<T>): string =>
  JSON.stringify([
    apiVersionOf(type),
    type.plural,
    options.namespace ?? '',
    options.labelSelector ?? '',
    options.fieldSelector ?? '',
  ]);
