import { expect, test } from 'vitest';
import type { Cache, Change } from '#kube/model/types.ts';
import type { ConfigMap } from '#shared/domain/kube-object.ts';
import { silentLog } from '#shared/ports/log.ts';
import { NamespacedCaches } from './namespaced-caches.ts';

/** A cache that others use, too: each subscriber has to end its subscription. */
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

test('follow after the abort opens nothing, and the abort ends all subscriptions', () => {
  const { cache, listeners } = sharedCache();
  const stop = new AbortController();
  const namespaces = new NamespacedCaches<{ here: Cache<ConfigMap>; there: Cache<ConfigMap> }>(
    {
      open: () => ({ here: cache, there: cache }),
      onChange: { here: () => undefined, there: () => undefined },
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

/** Caches that are in step when `sync` says so, and end with their signal. */
function play() {
  const happened: string[] = [];
  const open = new Map<string, (change: Change<ConfigMap>) => void>();
  const syncs = new Map<string, () => void>();
  const stop = new AbortController();
  const namespaces = new NamespacedCaches<{ one: Cache<ConfigMap> }>(
    {
      open(local, remote, signal) {
        const name = `${local} as ${remote}`;
        happened.push(`${name} opens`);
        signal.addEventListener('abort', () => happened.push(`${name} ends`));
        let isSynced = false;
        const cache = {
          subscribe(listener: (change: Change<ConfigMap>) => void) {
            open.set(name, listener);
            return () => void open.delete(name);
          },
          isSynced: () => isSynced,
          synced: (until: AbortSignal) =>
            new Promise<void>((resolve, reject) => {
              until.addEventListener('abort', () => reject(until.reason));
              syncs.set(name, () => {
                isSynced = true;
                resolve();
              });
            }),
        };
        return { one: cache as unknown as Cache<ConfigMap> };
      },
      onChange: { one: (local, { after }) => happened.push(`${local} has ${after?.metadata.name}`) },
      onSynced: ({ local }) => happened.push(`${local} is in step`),
      onDropped: (local) => happened.push(`${local} is dropped`),
      log: { ...silentLog, error: (message) => happened.push(message) },
    },
    stop.signal,
  );
  const take = (): string[] => happened.splice(0);
  return { namespaces, open, syncs, stop, take };
}
const object: ConfigMap = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' } };

test('a namespace is followed while it is mapped, says when it is in step, and is dropped before it is followed elsewhere', async () => {
  const { namespaces, open, syncs, take } = play();
  namespaces.follow(new Map([['demo', 'demo-1']]));
  expect(take()).toEqual(['demo as demo-1 opens']);
  expect(namespaces.of('demo')).toMatchObject({ local: 'demo', remote: 'demo-1' });
  expect(namespaces.of('demo')?.isSynced()).toBe(false);
  open.get('demo as demo-1')?.({ after: object });
  syncs.get('demo as demo-1')?.();
  await new Promise((resolve) => setImmediate(resolve));
  expect(take()).toEqual(['demo has a', 'demo is in step']);
  expect(namespaces.of('demo')?.isSynced()).toBe(true);
  namespaces.follow(new Map([['demo', 'demo-1']]));
  expect(take()).toEqual([]);
  namespaces.follow(new Map([['demo', 'demo-2']]));
  expect(take()).toEqual(['demo as demo-1 ends', 'demo is dropped', 'demo as demo-2 opens']);
  expect([...open.keys()]).toEqual(['demo as demo-2']);
  namespaces.follow(new Map());
  expect(take()).toEqual(['demo as demo-2 ends', 'demo is dropped']);
  expect([namespaces.list(), open.size]).toEqual([[], 0]);
});

test('a restart opens the same namespaces again and drops none', () => {
  const { namespaces, open, take } = play();
  namespaces.follow(new Map([['demo', 'demo-1']]));
  take();
  namespaces.restart();
  expect(take()).toEqual(['demo as demo-1 ends', 'demo as demo-1 opens']);
  expect(open.size).toBe(1);
});

test('after the abort a restart opens nothing, and an end while the first list is awaited raises no alarm', async () => {
  const { namespaces, open, stop, take } = play();
  namespaces.follow(new Map([['demo', 'demo-1']]));
  take();
  stop.abort();
  namespaces.restart();
  await new Promise((resolve) => setImmediate(resolve));
  expect([take(), open.size]).toEqual([['demo as demo-1 ends'], 0]);
});
