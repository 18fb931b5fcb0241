import { expect, test } from 'vitest';
import type { Node } from '#shared/domain/kube-object.ts';
import { allocatableOf, providerConditions } from './provider-state.ts';

const node = (name: string, conditions: Record<string, string>, more: object = {}): Node =>
  ({
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name },
    status: {
      allocatable: { cpu: '4', memory: '8Gi', 'example.dev/gpu': '1' },
      conditions: Object.entries(conditions).map(([type, status]) => ({ type, status })),
    },
    ...more,
  }) as unknown as Node;
const good = (name: string): Node => node(name, { Ready: 'True', MemoryPressure: 'False' });
const status = (nodes: readonly Node[], type: string, cordoned?: string): string | undefined =>
  providerConditions(nodes, cordoned).find((condition) => condition.type === type)?.status;

test('capacity is the sum over the nodes that are ready and take pods', () => {
  const away = [
    node('broken', { Ready: 'False' }),
    node('closed', { Ready: 'True' }, { spec: { unschedulable: true } }),
  ];
  expect(allocatableOf([good('a'), good('b'), ...away])).toEqual({ cpu: '8', memory: '16Gi', 'example.dev/gpu': '2' });
});

test.each([
  {
    name: 'one node of two is ready',
    nodes: [good('a'), node('b', { Ready: 'Unknown' })],
    type: 'Ready',
    want: 'True',
  },
  { name: 'no node is ready', nodes: [node('a', { Ready: 'False' })], type: 'Ready', want: 'False' },
  { name: 'there are no nodes', nodes: [], type: 'Ready', want: undefined },
  {
    name: 'all nodes are closed for new pods',
    nodes: [node('a', { Ready: 'True' }, { spec: { unschedulable: true } })],
    type: 'Ready',
    want: 'True',
  },
  {
    name: 'one node of two has pressure',
    nodes: [good('a'), node('b', { Ready: 'True', MemoryPressure: 'True' })],
    type: 'MemoryPressure',
    want: 'False',
  },
  {
    name: 'every ready node has pressure',
    nodes: [node('a', { Ready: 'False' }), node('b', { Ready: 'True', DiskPressure: 'True' })],
    type: 'DiskPressure',
    want: 'True',
  },
])('$type is $want when $name', ({ nodes, type, want }) => {
  expect(status(nodes, type)).toBe(want);
});

test('a cordon is told with its reason', () => {
  expect(providerConditions([], 'the provider has this slice cordoned')).toEqual([
    { type: 'Cordoned', status: 'True', reason: 'Cordoned', message: 'the provider has this slice cordoned' },
  ]);
  expect(status([], 'Cordoned')).toBe('False');
});
