/** When an API key was last used, to the hour: each process writes at most once an hour per key. */
import type { Log } from '#shared/ports/log.ts';
import type { ControlDeps } from '../model/deps.ts';
import { key } from '../store/keys.ts';

export interface KeyUse {
  used(tenant: string, id: string, signal?: AbortSignal): Promise<void>;
  /** Of each of these, in their order. What was noted within the last second may be missing. */
  last(tenant: string, ids: readonly string[], signal?: AbortSignal): Promise<readonly (number | undefined)[]>;
}

interface Use {
  readonly at: number;
}

const stepMs = 3_600_000;
const maxNoted = 50_000;

export function createKeyUse({
  store,
  clock,
  log,
}: Pick<ControlDeps, 'store' | 'clock'> & { readonly log: Log }): KeyUse {
  /** By key; what the store has at least. */
  const noted = new Map<string, number>();
  return {
    async used(tenant, id, signal) {
      const now = clock.now();
      if (now - (noted.get(id) ?? Number.NEGATIVE_INFINITY) < stepMs) return;
      if (noted.size >= maxNoted) noted.clear();
      const at = key.apiKeyUse(tenant, id);
      try {
        const before = await store.get<Use>(at.pk, at.sk, signal);
        noted.set(id, before && now - before.value.at < stepMs ? before.value.at : now);
        if (noted.get(id) !== now) return;
        const value: Use = { at: now };
        await store.transact(
          [before ? { op: 'update', ...at, value, ifVersion: before.version } : { op: 'put', ...at, value }],
          [],
          signal,
        );
      } catch (error) {
        signal?.throwIfAborted();
        // Another process was quicker, or the store is in trouble: a request must not fail for it.
        log.debug('the use of a key was not noted', { key: id, reason: (error as Error).message });
      }
    },
    async last(tenant, ids, signal) {
      const keys = ids.map((id) => key.apiKeyUse(tenant, id));
      return (await store.getMany<Use>({ keys, eventual: true }, signal)).map((use) => use?.value.at);
    },
  };
}
