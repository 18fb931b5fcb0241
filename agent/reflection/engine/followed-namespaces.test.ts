import { expect, test } from 'vitest';
import type { Cache } from '#kube/model/types.ts';
import type { ConfigMap } from '#shared/domain/kube-object.ts';
import { silentLog } from '#shared/ports/log.ts';
import { FollowedNamespaces } from './followed-namespaces.ts';

/** A cache that others use, too, so that who subscribes has to end that himself. */
function sharedCache() {
  const listeners = new Set<unknown>();
  const cache = {
    subscribe: (listener: unknown) => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    synced: async () => undefined,
  } as unknown as Cache<ConfigMap>;
  return { cache, listeners };
}

test('what is told to follow after its end follows nothing, and hears of nothing any more', () => {
  const { cache, listeners } = sharedCache();
  const stop = new AbortController();
  const namespaces = new FollowedNamespaces<ConfigMap, ConfigMap>(
    {
      open: () => ({ here: cache, there: cache }),
      onHere: () => undefined,
      onThere: () => undefined,
      onSynced: () => undefined,
      log: silentLog,
    },
    stop.signal,
  );
  namespaces.follow(new Map([['demo', 'demo-rome']]));
  expect(listeners.size).toBe(2);
  stop.abort();
  expect(listeners.size).toBe(0);
  namespaces.follow(new Map([['shop', 'shop-rome']]));
  expect(listeners.size).toBe(0);
});
