import { expect, test } from 'vitest';
import { Store } from '#kube/cache/store.ts';
import type { ShadowPod } from '#shared/schema/liqo/shadow-pod.ts';
import { departed } from './departed.ts';

let serial = 0;
const shadow = (name: string, uid: string): ShadowPod =>
  ({ metadata: { name, namespace: 'demo', uid, resourceVersion: String(++serial) } }) as unknown as ShadowPod;

function follow() {
  const store = new Store<ShadowPod>(() => undefined);
  const gone = departed({ subscribe: store.subscribe.bind(store) });
  return { store, gone };
}

test('a ShadowPod is known to be gone when its end was heard, and not before', () => {
  const { store, gone } = follow();
  store.put(shadow('a', 'uid-1'));
  store.put(shadow('a', 'uid-1'));
  expect(gone.has('uid-1')).toBe(false);
  store.remove('demo/a');
  expect([gone.has('uid-1'), gone.has('uid-2')]).toEqual([true, false]);
  store.put(shadow('a', 'uid-1'));
  expect(gone.has('uid-1')).toBe(false);
});

test('one whose name another has by now is gone, the other is not', () => {
  const { store, gone } = follow();
  store.put(shadow('a', 'uid-1'));
  store.put(shadow('a', 'uid-2'));
  expect([gone.has('uid-1'), gone.has('uid-2')]).toEqual([true, false]);
});

test('of very many only the latest are remembered', () => {
  const { store, gone } = follow();
  for (let i = 0; i <= 10_000; i += 1) {
    store.put(shadow('a', `uid-${i}`));
    store.remove('demo/a');
  }
  expect([gone.has('uid-0'), gone.has('uid-1'), gone.has('uid-10000')]).toEqual([false, true, true]);
});
