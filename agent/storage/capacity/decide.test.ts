/** What kube-scheduler is told of free storage, judged as it judges: by class, topology and size. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { CsiDriver, CsiStorageCapacity, StorageClass } from '#shared/domain/core-kinds.ts';
import { type LabelSelector, selectsLabels } from '#shared/domain/node-selector.ts';
import { parseQuantity } from '#shared/domain/quantity.ts';
import type { StorageType } from '#shared/schema/definition/fields.ts';
import type { VirtualNode } from '#shared/schema/liqo/virtual-node.ts';
import { decide, type Facts, unlimited, wantedCapacities } from './decide.ts';

const classOf = (name: string, provisioner: string, more: object = {}): StorageClass => ({
  apiVersion: 'storage.k8s.io/v1',
  kind: 'StorageClass',
  metadata: { name },
  provisioner,
  ...more,
});
const isthmus = classOf('isthmus', 'storage.isthmus.dev');
const liqo = classOf('liqo', 'liqo.io/storage');
const disk = classOf('disk', 'disk.example.com');
const driver = (storageCapacity: boolean): CsiDriver => ({
  apiVersion: 'storage.k8s.io/v1',
  kind: 'CSIDriver',
  metadata: { name: 'disk.example.com' },
  spec: { storageCapacity },
});
const said = (name: string, more: Partial<CsiStorageCapacity>): CsiStorageCapacity => ({
  apiVersion: 'storage.k8s.io/v1',
  kind: 'CSIStorageCapacity',
  metadata: { namespace: 'disk-system', name },
  storageClassName: 'disk',
  ...more,
});
const virtualNode = (name: string, clusterID: string, storageClasses: readonly StorageType[], more = {}): VirtualNode =>
  ({
    metadata: { namespace: `liqo-tenant-${clusterID}`, name, ...more },
    spec: { clusterID, storageClasses },
  }) as unknown as VirtualNode;

const nodeLabels = {
  worker: { 'kubernetes.io/hostname': 'worker' },
  other: { 'kubernetes.io/hostname': 'other' },
  milan: { 'liqo.io/type': 'virtual-node', 'liqo.io/remote-cluster-id': 'milan' },
  turin: { 'liqo.io/type': 'virtual-node', 'liqo.io/remote-cluster-id': 'turin' },
} as const;
/** As `hasEnoughCapacity` of kube-scheduler's volume binding. */
const fits = (node: keyof typeof nodeLabels, size: string, objects: readonly CsiStorageCapacity[], of = 'isthmus') =>
  objects.some(
    ({ storageClassName, nodeTopology, capacity, maximumVolumeSize }) =>
      storageClassName === of &&
      parseQuantity(maximumVolumeSize ?? capacity ?? '0') >= parseQuantity(size) &&
      selectsLabels(nodeTopology as LabelSelector | undefined, nodeLabels[node]),
  );
const facts = (more: Partial<Facts> = {}): Facts => ({
  classes: [isthmus, liqo, disk],
  drivers: [],
  capacities: [],
  virtualNodes: [],
  ...more,
});

describe('free storage', () => {
  test('at a provider is the size of the largest claim that it would make of its default class', () => {
    const offered = [
      { storageClassName: 'fast', default: true, maximumVolumeSize: '5Gi' },
      { storageClassName: 'slow', maximumVolumeSize: '50Gi' },
    ];
    const objects = wantedCapacities(facts({ virtualNodes: [virtualNode('vn', 'milan', offered)] }));
    expect([fits('milan', '5Gi', objects), fits('milan', '6Gi', objects)]).toEqual([true, false]);
  });

  test('at a provider that offers several classes and no default is that of the one with the most room', () => {
    const offered = [
      { storageClassName: 'fast', maximumVolumeSize: '5Gi' },
      { storageClassName: 'slow', maximumVolumeSize: '50Gi' },
    ];
    const objects = wantedCapacities(facts({ virtualNodes: [virtualNode('vn', 'milan', offered)] }));
    expect(fits('milan', '50Gi', objects)).toBe(true);
  });

  test('is without limit at a provider that says nothing, and none at one that offers nothing or is leaving', () => {
    const plain = [{ storageClassName: 'fast', default: true }];
    const going = { deletionTimestamp: '2026-01-01T00:00:00Z' };
    const objects = (node: VirtualNode) => wantedCapacities(facts({ virtualNodes: [node] }));
    expect(fits('milan', '900Pi', objects(virtualNode('vn', 'milan', plain)))).toBe(true);
    expect(fits('milan', '0', objects(virtualNode('vn', 'milan', [])))).toBe(false);
    expect(fits('milan', '0', objects(virtualNode('vn', 'milan', plain, going)))).toBe(false);
  });

  test.each([
    { maximumVolumeSize: '-1Gi', is: '0' },
    { maximumVolumeSize: '1e99', is: unlimited },
    { maximumVolumeSize: 'much', is: '0' },
  ])('is of a size that an API server takes when a provider says $maximumVolumeSize', ({ maximumVolumeSize, is }) => {
    const offered = [{ storageClassName: 'fast', maximumVolumeSize }];
    const milan = virtualNode('vn', 'milan', offered);
    const sizes = wantedCapacities(facts({ classes: [isthmus], virtualNodes: [milan] })).map(
      ({ capacity }) => capacity,
    );
    expect(sizes).toEqual([is]);
  });

  test('of several nodes of one provider is the least that one of them says: they share its grant', () => {
    const nodes = ['9Gi', '7Gi'].map((maximumVolumeSize, i) =>
      virtualNode(`vn${i}`, 'milan', [{ storageClassName: 'fast', default: true, maximumVolumeSize }]),
    );
    const objects = wantedCapacities(facts({ virtualNodes: nodes }));
    expect([fits('milan', '7Gi', objects), fits('milan', '8Gi', objects)]).toEqual([true, false]);
  });

  test('in this cluster is without limit when its class does not tell, and on no virtual node', () => {
    for (const drivers of [[], [driver(false)]]) {
      const objects = wantedCapacities(facts({ drivers, capacities: [said('a', { capacity: '1Gi' })] }));
      expect(objects.map(({ capacity }) => capacity)).toEqual([unlimited]);
      expect([fits('worker', '900Pi', objects), fits('milan', '1', objects)]).toEqual([true, false]);
    }
  });

  test('in this cluster is that of its class, segment by segment, and on no virtual node', () => {
    const capacities = [
      said('a', { capacity: '9Gi', nodeTopology: { matchLabels: { 'kubernetes.io/hostname': 'worker' } } }),
      said('b', { capacity: '9Gi', maximumVolumeSize: '2Gi', nodeTopology: {} }),
      said('c', { nodeTopology: {} }),
      said('d', { capacity: '99Gi' }),
      said('e', { capacity: '99Gi', nodeTopology: {}, storageClassName: 'tape' }),
    ];
    const objects = wantedCapacities(facts({ drivers: [driver(true)], capacities }));
    expect([fits('worker', '9Gi', objects), fits('worker', '10Gi', objects)]).toEqual([true, false]);
    expect([fits('other', '2Gi', objects), fits('other', '3Gi', objects)]).toEqual([true, false]);
    expect(fits('milan', '1', objects)).toBe(false);
  });

  test('is told for classes of the one provisioner only, and not at all where no local class can be chosen', () => {
    expect(wantedCapacities(facts({ classes: [liqo, disk] }))).toEqual([]);
    expect(wantedCapacities(facts({ classes: [isthmus, liqo] }))).toEqual([]);
    expect(wantedCapacities(facts({ classes: [isthmus, disk, classOf('tape', 'tape.example.com')] }))).toEqual([]);
    const named = classOf('isthmus', 'storage.isthmus.dev', { parameters: { localStorageClass: 'gone' } });
    expect(wantedCapacities(facts({ classes: [named, disk] }))).toEqual([]);
  });
});

const size = fc.constantFrom('0', '1Gi', '2Gi', '1500M', '3Gi');
const offer = fc.record(
  { storageClassName: fc.constantFrom('fast', 'slow'), default: fc.boolean(), maximumVolumeSize: size },
  { requiredKeys: ['storageClassName'] },
);
const anyFacts = fc.record({
  classes: fc.subarray([isthmus, liqo, disk, classOf('wide', 'storage.isthmus.dev'), classOf('tape', 'tape.io')]),
  drivers: fc.subarray([driver(true)]),
  capacities: fc.uniqueArray(
    fc.record({ name: fc.constantFrom('a', 'b', 'c'), capacity: size, host: fc.constantFrom('worker', 'other') }),
    { maxLength: 3, selector: ({ name }) => name },
  ),
  nodes: fc.array(fc.tuple(fc.constantFrom('milan', 'turin'), fc.array(offer, { maxLength: 3 })), { maxLength: 3 }),
});
type Drawn = typeof anyFacts extends fc.Arbitrary<infer T> ? T : never;
const factsOf = ({ classes, drivers, capacities, nodes }: Drawn): Facts => ({
  classes,
  drivers,
  capacities: capacities.map(({ name, capacity, host }) =>
    said(name, { capacity, nodeTopology: { matchLabels: { 'kubernetes.io/hostname': host } } }),
  ),
  virtualNodes: nodes.map(([provider, offered], i) => virtualNode(`vn${i}`, provider, offered)),
});

test('from objects of any earlier facts, also when they were changed by hand, the actions lead to exactly what is wanted, and then there are none', () => {
  const key = ({ metadata }: CsiStorageCapacity) => `${metadata.namespace}/${metadata.name}`;
  fc.assert(
    fc.property(anyFacts, anyFacts, fc.boolean(), (first, second, isTouched) => {
      const before = wantedCapacities(factsOf(first)).map((one, i) => ({
        ...one,
        ...(isTouched && i === 0 && { maximumVolumeSize: '1' }),
      }));
      const now = factsOf(second);
      const store = new Map([...now.capacities, ...before].map((one) => [key(one), one]));
      const strangers = now.capacities.map(key);
      const step = () => decide({ ...now, capacities: [...store.values()] });
      for (const action of step()) {
        expect(strangers).not.toContain(key(action.object));
        if (action.do === 'remove') store.delete(key(action.object));
        else if (action.do === 'create') store.set(key(action.object), action.object);
        else {
          const { maximumVolumeSize: _, ...rest } = action.object;
          store.set(key(rest), { ...rest, capacity: action.capacity });
        }
      }
      expect(step()).toEqual([]);
      const ours = [...store.values()].filter((one) => !strangers.includes(key(one)));
      const byName = (a: CsiStorageCapacity, b: CsiStorageCapacity) => (key(a) < key(b) ? -1 : 1);
      expect(ours.sort(byName)).toEqual(wantedCapacities(now).sort(byName));
    }),
  );
});

test('a node of this cluster has room by class isthmus exactly where its own class has, for every input', () => {
  fc.assert(
    fc.property(anyFacts, size, fc.constantFrom('worker' as const, 'other' as const), (drawn, asked, node) => {
      const known = { ...factsOf(drawn), classes: [isthmus, disk], drivers: [driver(true)] };
      expect(fits(node, asked, wantedCapacities(known))).toBe(fits(node, asked, known.capacities, 'disk'));
    }),
  );
});
