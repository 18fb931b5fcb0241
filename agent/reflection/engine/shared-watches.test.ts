import { expect, test } from 'vitest';
import type { Caches } from '#kube/model/types.ts';
import { configMaps } from '#shared/domain/core-kinds.ts';
import { SharedScopes } from './shared-watches.ts';

/** The watches that were opened, and until when. */
function watches() {
  const opened: AbortSignal[] = [];
  const caches = {
    scoped: (_type: unknown, _options: unknown, signal: AbortSignal) => {
      opened.push(signal);
      return { opened: opened.length };
    },
  } as unknown as Caches;
  return { caches, open: () => opened.filter(({ aborted }) => !aborted).length };
}

test('a namespace is watched once for all providers, until the last of them leaves', () => {
  const { caches, open } = watches();
  const scopes = new SharedScopes(caches);
  const [one, other] = [new AbortController(), new AbortController()];
  const use = (until: AbortSignal) => scopes.use('configmap', configMaps, { namespace: 'demo' }, until);
  expect(use(one.signal)).toBe(use(other.signal));
  expect(open()).toBe(1);
  one.abort();
  expect(open()).toBe(1);
  other.abort();
  expect(open()).toBe(0);
});

test('a subscriber whose signal has aborted already keeps nothing watched', () => {
  const { caches, open } = watches();
  const scopes = new SharedScopes(caches);
  scopes.use('configmap', configMaps, { namespace: 'demo' }, AbortSignal.abort());
  expect(open()).toBe(0);
});
