/** What is said of a claim at a provider while the watch there lags behind the last patch. */
import { describe, expect, test } from 'vitest';
import type { Caches, KubeApi } from '#kube/model/types.ts';
import type { PersistentVolumeClaim } from '#shared/domain/core-kinds.ts';
import { silentLog } from '#shared/ports/log.ts';
import { RemoteClaims } from './remote-claims.ts';

const ref = { namespace: 'shop-rome', name: 'data' };
const real = (claimUid: string): PersistentVolumeClaim =>
  ({
    metadata: { ...ref, annotations: { 'isthmus.dev/claim': 'shop/data', 'isthmus.dev/claim-uid': claimUid } },
  }) as unknown as PersistentVolumeClaim;

/** A provider whose watch shows `shown`, and whose API server has `there`. */
function provider({
  shown,
  there,
}: {
  readonly shown?: PersistentVolumeClaim;
  readonly there?: PersistentVolumeClaim;
}) {
  let asked = 0;
  const api = {
    list: async () => [],
    get: async () => {
      asked += 1;
      return there;
    },
  } as unknown as KubeApi;
  const cache = { get: () => shown, subscribe: () => () => undefined, synced: async () => undefined };
  const caches = { scoped: () => cache } as unknown as Caches;
  const { signal } = new AbortController();
  const place = () => undefined;
  const claims = new RemoteClaims({ api, caches, consumer: 'rome', provider: 'milan', place, log: silentLog }, signal);
  claims.follow(new Map([['shop', 'shop-rome']]), signal);
  claims.watch('shop', 'shop-rome');
  return { find: (uids: readonly string[]) => claims.find('shop', ref, uids, signal), asked: () => asked };
}

describe('the claim at a provider for a claim of this cluster', () => {
  test('comes from the cache when the cache has it for that claim', async () => {
    const { find, asked } = provider({ shown: real('new') });
    expect(await find(['new', 'old'])).toEqual(real('new'));
    expect(asked()).toBe(0);
  });

  test('is asked for when the cache shows it for the claim that had the volume before', async () => {
    expect(await provider({ shown: real('staging'), there: real('new') }).find(['new'])).toEqual(real('new'));
  });

  test('is the one of another claim only when the API server says so', async () => {
    const { find, asked } = provider({ shown: real('other'), there: real('other') });
    expect(await find(['new'])).toEqual(real('other'));
    expect(asked()).toBe(1);
  });

  test('is gone only when the API server does not have it', async () => {
    const { find, asked } = provider({});
    expect(await find(['new'])).toBeUndefined();
    expect(asked()).toBe(1);
  });
});
