import { expect, test } from 'vitest';
import { OwnWrites } from '#kube/cache/own-writes.ts';
import { Store } from '#kube/cache/store.ts';
import type { Cache } from '#kube/model/types.ts';
import { ManualClock } from '#shared/ports/clock.ts';
import type { ShadowPod } from '#shared/schema/liqo/shadow-pod.ts';
import { firstSeen } from './first-seen.ts';

let serial = 0;
const shadow = (name: string, more: { metadata?: object; status?: object } = {}): ShadowPod =>
  ({
    ...more,
    metadata: { name, namespace: 'demo', uid: `uid-${name}`, resourceVersion: String(++serial), ...more.metadata },
    spec: { pod: { containers: [{ name: 'app', image: 'app:1' }] } },
  }) as unknown as ShadowPod;
const at = (name: string) => ({ namespace: 'demo', name });

function following(known: readonly ShadowPod[]) {
  const store = new Store<ShadowPod>(() => undefined);
  let isSynced = false;
  const cache = {
    get: ({ namespace, name }: { namespace?: string; name: string }) => store.get(`${namespace}/${name}`),
    subscribe: store.subscribe.bind(store),
    isSynced: () => isSynced,
  } as unknown as Cache<ShadowPod>;
  const start = () => {
    const written = new OwnWrites<ShadowPod>({ clock: new ManualClock() });
    written.follow(cache);
    return firstSeen(cache, written);
  };
  return {
    store,
    open() {
      const opened = start();
      for (const one of known) store.put(one);
      isSynced = true;
      return opened;
    },
    openLate() {
      for (const one of known) store.put(one);
      isSynced = true;
      return start();
    },
  };
}

test('a ShadowPod that comes while all is followed is taken as it came, once', () => {
  const { store, open } = following([]);
  const opened = open();
  store.put(shadow('a'));
  expect(opened.take(at('a'))?.metadata.name).toBe('a');
  expect(opened.take(at('a'))).toBeUndefined();
});

test.each(['open', 'openLate'] as const)(
  'one that was there at the beginning (%s) may have had its pod already, and is read anew',
  (how) => {
    const world = following([shadow('a')]);
    expect(world[how]().take(at('a'))).toBeUndefined();
  },
);

test.each([
  ['is being deleted', { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } }],
  ['has a phase', { status: { phase: 'Running' } }],
  ['was refused before', { status: { phase: 'Unknown', reason: 'QuotaExceeded' } }],
])('one that %s meanwhile is read again', (_, more) => {
  const { store, open } = following([]);
  const opened = open();
  store.put(shadow('a'));
  store.put(shadow('a', more));
  expect(opened.take(at('a'))).toBeUndefined();
});

test('one that is deleted before it was taken is forgotten, and so is its successor of the same name once that was taken', () => {
  const { store, open } = following([]);
  const opened = open();
  store.put(shadow('a'));
  store.remove('demo/a');
  expect(opened.take(at('a'))).toBeUndefined();
  store.put(shadow('a', { metadata: { uid: 'uid-2' } }));
  expect(opened.take(at('a'))?.metadata.uid).toBe('uid-2');
  expect(opened.take(at('a'))).toBeUndefined();
});
