import { expect, test } from 'vitest';
import type { Cache, CacheOptions, Caches } from '#kube/model/types.ts';
import type { KubeObject, ObjectRef, ResourceType } from '#shared/domain/kube-object.ts';
import { resourceSlices } from '#shared/schema/liqo/resource-slice.ts';
import { secret } from '../kinds/secret.ts';
import { objectOf, watchedObjects } from './watched-objects.ts';

const set = { peering: 'per_1', role: 'provider', peer: 'milan', state: 'present' } as const;
const text = (bytes: number): string => Buffer.alloc(bytes, 'x').toString('base64');

const object = (kind: string, name: string, namespace: string, more: object = {}): KubeObject => ({
  apiVersion: 'v1',
  kind,
  metadata: { name, namespace, uid: name, labels: { 'isthmus.dev/peering': 'per_1' } },
  ...more,
});

const cacheOf = (type: ResourceType, objects: readonly KubeObject[]): Cache<KubeObject> =>
  ({
    type,
    list: () => objects,
    get: (ref: ObjectRef) =>
      objects.find(({ metadata }) => metadata.name === ref.name && metadata.namespace === ref.namespace),
  }) as unknown as Cache<KubeObject>;

/** As the agent caches it. */
function cached(stored: KubeObject): KubeObject {
  let kept: KubeObject | undefined;
  const caches = {
    cache: (_: ResourceType, { labelSelector, transform }: CacheOptions<KubeObject>) => {
      if (labelSelector === 'isthmus.dev/peering') kept = transform?.(stored);
      return cacheOf(_, []);
    },
  };
  secret.caches(caches as unknown as Caches);
  return kept as KubeObject;
}

test('a Secret that a guest labels with its peering is neither reported nor kept', () => {
  const planted = Array.from({ length: 20 }, (_, i) =>
    object('Secret', `mine-${i}`, 'shop-milan', { data: { csr: text(24_000), publicKey: text(24_000) } }),
  );
  // Names that a broker uses, in a namespace that is not the peering's.
  const named = ['liqo-nonce', 'liqo-signed-nonce', 'gw-milan'].map((name) =>
    object('Secret', name, 'shop-milan', { data: { csr: text(100) } }),
  );
  const { live, observed } = watchedObjects({ all: [cacheOf(secret.type, [...planted, ...named])] }, set);
  expect([live, observed]).toEqual([[], []]);
  expect(JSON.stringify(planted.map(cached)).length).toBeLessThan(10_000);
});

test('an object in the tenant namespace under a name that no broker uses is not reported', () => {
  const mine = ['milan', 'another'].map((name) => object('ResourceSlice', name, 'liqo-tenant-milan'));
  const { observed } = watchedObjects({ all: [cacheOf(resourceSlices, mine)] }, set);
  expect(observed.map(({ name }) => name)).toEqual(['milan']);
});

test('of what a Secret of the handshake holds, nothing beyond its size is reported', () => {
  const found = { csr: text(20_000), publicKey: text(100) };
  const kept = cached(object('Secret', 'liqo-nonce', 'liqo-tenant-milan', { data: found }));
  const [report] = watchedObjects({ all: [cacheOf(secret.type, [kept])] }, set).observed;
  expect(report?.data).toEqual({ publicKey: found.publicKey });
  expect(report?.unfit?.map(({ field }) => field)).toEqual(['csr']);
});

test('an object is found in whichever cache of its kind has it', () => {
  const own = object('Secret', 'gw-milan', 'liqo-tenant-milan');
  const all = [cacheOf(secret.type, []), cacheOf(resourceSlices, []), cacheOf(secret.type, [own])];
  expect(objectOf({ all }, set, 'Secret', 'gw-milan')).toBe(own);
  expect(objectOf({ all }, set, 'Secret', 'gw-rome')).toBeUndefined();
});
