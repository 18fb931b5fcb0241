import { expect, test } from 'vitest';
import type { StorageClass } from '#shared/domain/core-kinds.ts';
import type { PeeringPolicy } from '#shared/schema/isthmus/peering-policy.ts';
import { isStorageResource, offeredClasses, storageLimits, unofferedClass } from './storage-offer.ts';

const storageClass = (name: string, more: object = {}): StorageClass =>
  ({
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name },
    provisioner: 'p',
    ...more,
  }) as StorageClass;
const byDefault = { 'storageclass.kubernetes.io/is-default-class': 'true' };
const classes = [
  storageClass('slow'),
  storageClass('fast', {
    metadata: { name: 'fast', annotations: byDefault },
    volumeBindingMode: 'WaitForFirstConsumer',
    allowVolumeExpansion: true,
  }),
  storageClass('liqo', { provisioner: 'liqo.io/storage' }),
  storageClass('aware', { provisioner: 'storage.isthmus.dev' }),
];
const policy = (asProvider: object, name = 'a'): PeeringPolicy =>
  ({ metadata: { name }, spec: { asProvider: { enabled: true, peers: ['*'], ...asProvider } } }) as PeeringPolicy;
const names = (policies: readonly PeeringPolicy[], of = classes): string[] =>
  offeredClasses(policies, 'rome', of).map(({ storageClassName }) => storageClassName);

test('a cluster without policies, or with one that says nothing of storage, offers its default class with how it binds', () => {
  const fast = {
    storageClassName: 'fast',
    default: true,
    volumeBindingMode: 'WaitForFirstConsumer',
    allowVolumeExpansion: true,
  };
  expect(offeredClasses([], 'rome', classes)).toEqual([fast]);
  expect(offeredClasses([policy({})], 'rome', classes)).toEqual([fast]);
});

test.each([
  [[policy({ storageClasses: ['slow'] })], ['slow']],
  [[policy({ storageClasses: [] })], []],
  [
    [policy({ storageClasses: ['slow'] }), policy({}, 'b')],
    ['fast', 'slow'],
  ],
  [[policy({ storageClasses: ['*'] })], ['fast', 'slow']],
  [[policy({ storageClasses: ['liqo', 'missing'] })], []],
  [[policy({ peers: ['oslo'] })], []],
])('policies add up, name classes that exist, and never offer volumes of third clusters: %#', (policies, offered) => {
  expect(names(policies)).toEqual(offered);
});

test('the default class is the newest of those marked, as the API server chooses it', () => {
  const at = (name: string, creationTimestamp: string) =>
    storageClass(name, { metadata: { name, annotations: byDefault, creationTimestamp } });
  expect(names([], [at('old', '2026-01-01T00:00:00Z'), at('new', '2026-02-01T00:00:00Z')])).toEqual(['new']);
});

test('resources of storage are told from those of nodes, and a class that is not offered is named', () => {
  const gold = 'gold.storageclass.storage.k8s.io/requests.storage';
  expect(['requests.storage', 'persistentvolumeclaims', gold].every(isStorageResource)).toBe(true);
  expect(['cpu', 'ephemeral-storage', 'requests.cpu'].some(isStorageResource)).toBe(false);
  expect(unofferedClass({ cpu: '1', [gold]: '1Gi' }, ['fast'])).toBe('gold');
  expect(unofferedClass({ 'requests.storage': '1Gi', [gold]: '1Gi' }, ['gold'])).toBeUndefined();
});

test('is limited by all slices together, and not where one of them says nothing', () => {
  const both = [{ 'requests.storage': '4Gi' }, { 'requests.storage': '6Gi', cpu: '1' }];
  expect(storageLimits(both)).toEqual({ 'requests.storage': 10n * 2n ** 30n * 1_000_000_000n });
  expect(storageLimits([...both, { cpu: '1' }])).toEqual({});
});
