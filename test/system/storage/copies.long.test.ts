/** Claims that begin as copies of others, on two real clusters with a CSI driver in each: the bytes of the source, in the cluster of the source. */
import path from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { coreEvents, type PersistentVolumeClaim, persistentVolumeClaims } from '#shared/domain/core-kinds.ts';
import { storageNamespace } from '#shared/domain/storage-keys.ts';
import { eventually } from '#test/harness/eventually.ts';
import { inOrder } from '#test/harness/in-order.ts';
import { removeProductClusters } from '#test/harness/product-clusters.ts';
import { repositoryRoot } from '#test/testbed/repository-root.ts';
import { type ClusterName, consumer, isReady, patience, provider, type Stage } from '../whole-clusters/stage.ts';
import { claim, genuine, on, openStorageStage, readClaim, reader, shop, shopThere, writer } from './storage-stage.ts';

const place = { root: repositoryRoot, dir: path.join(repositoryRoot, '.build', 'storage-copies') };
vi.setConfig({ testTimeout: 240_000, hookTimeout: 180_000 });
let stage: Stage;

beforeAll(async () => {
  await removeProductClusters(place);
  stage = await openStorageStage({ ...place, brokerPort: 7696 });
}, 900_000);
afterAll(() => removeProductClusters(place), 180_000);
inOrder('file');

const kubectl = (cluster: ClusterName, ...args: readonly string[]): Promise<string> =>
  stage.world.cluster(cluster).kubectl(...args);
const found = (cluster: ClusterName, namespace: string, name: string) =>
  stage.api(cluster).get(persistentVolumeClaims, { namespace, name });
const bound = (cluster: ClusterName, namespace: string, name: string): Promise<PersistentVolumeClaim> =>
  eventually(
    `claim ${namespace}/${name} of ${cluster} is Bound`,
    async () => {
      const now = await found(cluster, namespace, name);
      if (now?.status?.phase === 'Bound') return now;
      throw new Error(JSON.stringify(now?.status ?? 'absent'));
    },
    patience,
  );
const copyOf = (name: string, storage = '32Mi') => ({
  dataSource: { kind: 'PersistentVolumeClaim', name },
  resources: { requests: { storage } },
});
const read = (name: string, claimName: string) => readClaim(stage, name, claimName);
const append = (cluster: ClusterName, namespace: string, name: string, text: string) =>
  kubectl(cluster, '-n', namespace, 'exec', name, '--', 'workload', 'write', '/data/notes', text);
const event = (name: string, reason: string) =>
  eventually(
    `event ${reason} of ${name}`,
    async () => {
      const all = await stage.api(consumer).list(coreEvents, { namespace: shop });
      const one = all.find(({ involvedObject, reason: is }) => involvedObject.name === name && is === reason);
      if (one) return one.message ?? '';
      throw new Error(all.map(({ reason: is, message }) => `${is}: ${message}`).join('\n'));
    },
    patience,
  );

test('a copy of a volume of this cluster, which a pod has mounted, has its bytes, and later writes of one are not in the other', async () => {
  await stage.apply(consumer, claim('book'), writer('author', 'book', 'first line', on(genuine)));
  await stage.podThat(consumer, [shop, 'author'], 'is ready', isReady);
  await stage.apply(consumer, claim('book-copy', {}, copyOf('book')));
  expect(await read('book-reader', 'book-copy')).toEqual({ text: 'first line\n', node: genuine });
  const source = await bound(consumer, shop, 'book');
  const copy = await bound(consumer, shop, 'book-copy');
  const real = await found(consumer, storageNamespace, copy.metadata.uid ?? '');
  expect(real?.spec?.dataSource).toMatchObject({ kind: 'PersistentVolumeClaim', name: source.metadata.uid });
  await append(consumer, shop, 'author', 'second line');
  expect((await read('book-again', 'book-copy')).text).toBe('first line\n');
});

test('a copy of a volume at the provider is made there, larger if it asks for more, and its pod runs there', async () => {
  await stage.apply(consumer, claim('far'), writer('far-author', 'far', 'written next door', on(provider)));
  await stage.podThat(consumer, [shop, 'far-author'], 'is ready', isReady);
  await stage.apply(consumer, claim('far-copy', {}, copyOf('far', '64Mi')));
  expect(await read('far-reader', 'far-copy')).toEqual({ text: 'written next door\n', node: provider });
  const real = await bound(provider, shopThere, 'far-copy');
  expect(real.spec?.dataSource).toMatchObject({ kind: 'PersistentVolumeClaim', name: 'far' });
  expect(real.status?.capacity?.storage).toBe('64Mi');
});

test('a copy whose pod was sent elsewhere before its source had a place is made nowhere, says so, and is made where the source is by the next pod', async () => {
  await stage.apply(consumer, claim('late-copy', {}, copyOf('late')), reader(shop, 'astray', 'late-copy', on(genuine)));
  expect(await event('late-copy', 'WaitingForVolume')).toMatch(/claim shop\/late, of which it is to be a copy/);
  await stage.apply(consumer, claim('late'), writer('late-author', 'late', 'at last', on(provider)));
  await stage.podThat(consumer, [shop, 'late-author'], 'is ready', isReady);
  expect(await event('late-copy', 'DataSourceElsewhere')).toMatch(
    /whose volume is at cluster milan, and node rome-1, which the scheduler selected, is in this cluster/,
  );
  const { metadata } = (await found(consumer, shop, 'late-copy')) ?? {};
  expect(await found(consumer, storageNamespace, metadata?.uid ?? '')).toBeUndefined();
  expect(await found(provider, shopThere, 'late-copy')).toBeUndefined();
  await kubectl(consumer, '-n', shop, 'delete', 'pod', 'astray', '--wait');
  expect(await read('late-reader', 'late-copy')).toEqual({ text: 'at last\n', node: provider });
});

test('a copy goes with its data and leaves its source as it was', async () => {
  await kubectl(consumer, '-n', shop, 'delete', 'pvc', 'far-copy', '--wait');
  await eventually('its real claim is gone', async () => !(await found(provider, shopThere, 'far-copy')), patience);
  expect(await kubectl(provider, '-n', shopThere, 'exec', 'far-author', '--', 'cat', '/data/notes')).toBe(
    'written next door\n',
  );
});
