import { expect, test } from 'vitest';
import type { Node } from '#shared/domain/kube-object.ts';
import { amountsOf } from '#shared/domain/pod-resources.ts';
import { providerConditions, supplyOf } from './provider-state.ts';

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

const nowMs = Date.UTC(2026, 0, 1);
const lostFor = (ms: number): Node => {
  const lost = node('lost', {});
  const lastTransitionTime = new Date(nowMs - ms).toISOString();
  return {
    ...lost,
    status: { ...lost.status, conditions: [{ type: 'Ready', status: 'Unknown', lastTransitionTime }] },
  } as Node;
};
const nothing = () => ({});

test('capacity is the sum over the nodes that are ready and take pods, less what own pods on them request', () => {
  const away = [
    node('broken', { Ready: 'False' }),
    node('closed', { Ready: 'True' }, { spec: { unschedulable: true } }),
  ];
  const usage = (name: string) => amountsOf({ a: { cpu: '1' }, closed: { cpu: '3' } }[name]);
  const { ready, lasting } = supplyOf([good('a'), good('b'), ...away], usage, nowMs);
  expect(ready).toEqual({
    allocatable: amountsOf({ cpu: '8', memory: '16Gi', 'example.dev/gpu': '2' }),
    own: amountsOf({ cpu: '1' }),
  });
  expect(lasting).toEqual(ready);
});

test('nodes that an administrator keeps free by a taint are no capacity, except for consumers whose pods may tolerate it', () => {
  const tainted = (name: string, key: string, effect: string) =>
    node(name, { Ready: 'True' }, { spec: { taints: [{ key, effect }] } });
  const nodes = [
    good('a'),
    tainted('control', 'node-role.kubernetes.io/control-plane', 'NoSchedule'),
    tainted('gpu', 'example.dev/gpu', 'NoExecute'),
    tainted('soft', 'example.dev/soft', 'PreferNoSchedule'),
    tainted('pressed', 'node.kubernetes.io/memory-pressure', 'NoSchedule'),
  ];
  const cpus = (tolerated?: string[]) => supplyOf(nodes, nothing, nowMs, tolerated);
  expect(cpus().ready.allocatable.cpu).toBe(amountsOf({ cpu: '12' }).cpu);
  expect(cpus().lasting).toEqual(cpus().ready);
  expect(cpus(['example.dev/*']).ready.allocatable.cpu).toBe(amountsOf({ cpu: '16' }).cpu);
  expect(cpus(['*']).ready.allocatable.cpu).toBe(amountsOf({ cpu: '20' }).cpu);
  expect(status([tainted('gpu', 'example.dev/gpu', 'NoSchedule'), node('b', { Ready: 'False' })], 'Ready')).toBe(
    'False',
  );
});

test('a node that was lost within five minutes still lasts, and is looked at again when those are over', () => {
  const soon = supplyOf([good('a'), lostFor(60_000)], nothing, nowMs);
  expect(soon).toMatchObject({
    ready: { allocatable: amountsOf({ cpu: '4' }) },
    lasting: { allocatable: amountsOf({ cpu: '8' }) },
    lookAgainMs: 240_000,
  });
  const late = supplyOf([good('a'), lostFor(300_000)], nothing, nowMs);
  expect(late.lasting).toEqual(late.ready);
  expect(late.lookAgainMs).toBeUndefined();
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
