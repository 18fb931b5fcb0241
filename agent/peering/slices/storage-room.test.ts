/** The largest claim that a provider would make of a class now. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { fitsStorage } from '#agent/offloading/provider/storage/demand.ts';
import type { Cache, Caches } from '#kube/model/types.ts';
import type { CsiDriver, CsiStorageCapacity, StorageClass } from '#shared/domain/core-kinds.ts';
import type { KubeObject, Node } from '#shared/domain/kube-object.ts';
import { amountsOf } from '#shared/domain/pod-resources.ts';
import { parseQuantity } from '#shared/domain/quantity.ts';
import type { Quota } from '#shared/schema/liqo/quota.ts';
import { storageResources } from './storage-offer.ts';
import { createStorageRoom, largestClaim, largestOf, type Room, type Supply, withRoom } from './storage-room.ts';

const fast = { metadata: { name: 'fast' }, provisioner: 'fast.example.com' } as StorageClass;
const driver = { metadata: { name: 'fast.example.com' }, spec: { storageCapacity: true } } as CsiDriver;
const node = (name: string): Node => ({ apiVersion: 'v1', kind: 'Node', metadata: { name, labels: { host: name } } });
const segment = (host: string, more: object): CsiStorageCapacity => ({
  apiVersion: 'storage.k8s.io/v1',
  kind: 'CSIStorageCapacity',
  metadata: { name: host },
  storageClassName: 'fast',
  nodeTopology: { matchLabels: { host } },
  ...more,
});
const room = ({ limits = {}, used = {}, ...more }: Partial<Room & Supply> = {}): Room => {
  const none = { classes: [fast], drivers: [], capacities: [], nodes: [node('n1'), node('n2')] };
  return { limits, used, inNodes: largestOf({ ...none, ...more }) };
};
const ofFast = 'fast.storageclass.storage.k8s.io/requests.storage';

test.each([
  { of: 'nothing is known', known: {}, is: undefined },
  { of: 'a grant', known: { limits: { 'requests.storage': '5Gi' }, used: { 'requests.storage': '2Gi' } }, is: '3Gi' },
  { of: 'a grant of the class', known: { limits: { 'requests.storage': '5Gi', [ofFast]: '1Gi' } }, is: '1Gi' },
  { of: 'a grant that is overdrawn', known: { limits: { [ofFast]: '1Gi' }, used: { [ofFast]: '2Gi' } }, is: '0' },
  {
    of: 'a number of claims that is reached',
    known: { limits: { persistentvolumeclaims: '2' }, used: { persistentvolumeclaims: '2' } },
    is: '0',
  },
  {
    of: 'a number of claims that is not',
    known: { limits: { persistentvolumeclaims: '2' }, used: { persistentvolumeclaims: '1' } },
    is: undefined,
  },
])('$of: $is', ({ known: { limits = {}, used = {} }, is }) => {
  const amounts = { limits: amountsOf(limits), used: amountsOf(used) } as Partial<Room>;
  const offered = [{ storageClassName: 'fast' }];
  const [one] = withRoom(offered, room(amounts));
  expect(one).toEqual({ storageClassName: 'fast', ...(is !== undefined && { maximumVolumeSize: is }) });
});

test('what a driver says has to fit in one segment of a node here, and counts only for a driver that is asked', () => {
  const capacities = [
    segment('n1', { capacity: '4Gi' }),
    segment('n2', { capacity: '9Gi', maximumVolumeSize: '3Gi' }),
    segment('gone', { capacity: '90Gi' }),
    segment('n1', { capacity: '80Gi', storageClassName: 'slow' }),
  ];
  expect(largestClaim('fast', room({ drivers: [driver], capacities }))).toBe(parseQuantity('4Gi'));
  expect(largestClaim('fast', room({ capacities }))).toBeUndefined();
  expect(largestClaim('fast', room({ drivers: [driver] }))).toBe(0n);
  const limits = amountsOf({ 'requests.storage': '2Gi' });
  expect(largestClaim('fast', room({ drivers: [driver], capacities, limits }))).toBe(parseQuantity('2Gi'));
});

test('labels of nodes are compared only for a segment with more room than the ones before', () => {
  let looks = 0;
  const hosts = Array.from({ length: 200 }, (_, at) => `n${at}`);
  const nodes = hosts.map((name): Node => {
    const { metadata, ...rest } = node(name);
    return {
      ...rest,
      get metadata() {
        looks += 1;
        return metadata;
      },
    };
  });
  const capacities = hosts.toReversed().map((host) => segment(host, { capacity: '4Gi' }));
  expect(largestClaim('fast', room({ drivers: [driver], capacities, nodes }))).toBe(parseQuantity('4Gi'));
  expect(looks).toBe(hosts.length);
});

test('is looked at again for the one consumer whose claims have changed, not for its pods, and for all when a driver of this cluster says something', () => {
  const none = { list: () => [] } as unknown as Cache<never>;
  const caches = { cache: () => none } as unknown as Caches;
  const watches = createStorageRoom(caches, { classes: none, nodes: none }).watches((of) => `of ${of ?? 'all'}`);
  const [ofQuotas, , ofCapacities] = watches.map(({ keys }) => (object: object) => [...keys(object as KubeObject)]);
  const quota = (consumer: string, used: Record<string, string>): object => ({
    metadata: { name: consumer, labels: { 'liqo.io/remote-cluster-id': consumer } },
    status: { used },
  });
  const keys = [
    quota('rome', { cpu: '1', 'requests.storage': '1Gi' }),
    quota('rome', { cpu: '2', 'requests.storage': '1Gi' }),
    quota('rome', { cpu: '2', 'requests.storage': '2Gi' }),
    quota('milan', { cpu: '1' }),
    quota('milan', { cpu: '3' }),
  ].map((one) => ofQuotas?.(one));
  expect(keys).toEqual([['of rome'], [], ['of rome'], ['of milan'], []]);
  const labels = { 'csi.storage.k8s.io/drivername': 'storage.isthmus.dev' };
  const ours = segment('n1', { metadata: { namespace: 'liqo-storage', name: 'isthmus-1', labels } });
  expect([segment('n1', {}), ours].map((one) => ofCapacities?.(one))).toEqual([['of all'], []]);
});

test('it is the largest that admission lets pass, for any limits and uses', () => {
  const gibi = (n: number): string => `${n}Gi`;
  const names = storageResources('fast');
  const bytes = fc.dictionary(fc.constantFrom(...names.bytes), fc.integer({ min: 0, max: 5 }).map(gibi));
  const numbers = fc.dictionary(fc.constantFrom(...names.claims), fc.integer({ min: 0, max: 2 }).map(String));
  fc.assert(
    fc.property(bytes, numbers, bytes, numbers, fc.integer({ min: 0, max: 6 }), (limit, most, taken, had, asked) => {
      const limits = { ...limit, ...most };
      const used = amountsOf({ ...taken, ...had });
      const quota = { metadata: { name: 'q' }, spec: { user: 'u', resources: limits } } as unknown as Quota;
      const demand = Object.fromEntries([
        ...names.bytes.map((name) => [name, parseQuantity(gibi(asked))] as const),
        ...names.claims.map((name) => [name, parseQuantity('1')] as const),
      ]);
      const largest = largestClaim('fast', room({ limits: amountsOf(limits), used }));
      const isAdmitted = fitsStorage([quota], demand, used, 'rome').allowed;
      // A claim of no bytes fits a size of 0, which says that none does: no API server takes such a claim.
      if (asked > 0) expect(largest === undefined || parseQuantity(gibi(asked)) <= largest).toBe(isAdmitted);
    }),
  );
});
