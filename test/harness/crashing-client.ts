/** A way to the API server for controllers that die at a chosen write. */
import type { KubeApi } from '#kube/model/types.ts';

const writes = new Set(['create', 'update', 'apply', 'mergePatch', 'jsonPatch', 'delete', 'post']);

/**
 * Lets `count` writes through and answers none after: a process that died before it heard how its last write ended. With an odd `count` that last
 * write was done all the same. `died` resolves at that write, never if there is none.
 */
export function crashingClient(api: KubeApi, count: number): { readonly api: KubeApi; readonly died: Promise<void> } {
  let left = count;
  let die = (): void => {};
  const died = new Promise<void>((resolve) => {
    die = resolve;
  });
  const handler: ProxyHandler<KubeApi> = {
    get(target, name: keyof KubeApi) {
      const method = target[name] as (...args: unknown[]) => Promise<unknown>;
      if (!writes.has(name)) return method.bind(target);
      return async (...args: unknown[]) => {
        if (left-- > 0) return method.apply(target, args);
        if (left === -1 && count % 2 === 1) await method.apply(target, args).catch(() => undefined);
        die();
        return new Promise(() => {});
      };
    },
  };
  return { api: new Proxy(api, handler), died };
}

interface Pair {
  readonly home: KubeApi;
  readonly there: KubeApi;
}

/** One count of writes for two API servers. */
export function crashingPair(both: Pair, count: number): Pair & { readonly died: Promise<void> } {
  const method =
    (name: keyof KubeApi) =>
    (side: KubeApi, ...args: unknown[]) =>
      (side[name] as (...all: unknown[]) => Promise<unknown>).apply(side, args);
  const joined = new Proxy({} as KubeApi, { get: (_, name: keyof KubeApi) => method(name) });
  const { api, died } = crashingClient(joined, count);
  const through = (side: KubeApi): KubeApi =>
    new Proxy(side, {
      get:
        (_, name: keyof KubeApi) =>
        (...args: readonly unknown[]) =>
          (api[name] as unknown as (...all: readonly unknown[]) => Promise<unknown>)(side, ...args),
    });
  return { home: through(both.home), there: through(both.there), died };
}
