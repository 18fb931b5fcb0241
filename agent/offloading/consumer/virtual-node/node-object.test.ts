import { expect, test } from 'vitest';
import { mergePatched } from '#kube/http/testing/merge-patched.ts';
import type { Node } from '#shared/domain/kube-object.ts';
import type { ForeignCluster } from '#shared/schema/liqo/foreign-cluster.ts';
import type { VirtualNode, VirtualNodeSpec } from '#shared/schema/liqo/virtual-node.ts';
import {
  isOurs,
  type NetworkState,
  type NodeInput,
  networkState,
  newNode,
  nodePatch,
  nodeStatus,
  nodeStatusPatch,
} from './node-object.ts';

const virtualNode = (spec: Partial<VirtualNodeSpec> = {}): VirtualNode => ({
  apiVersion: 'offloading.liqo.io/v1beta1',
  kind: 'VirtualNode',
  metadata: { name: 'vn1', namespace: 't' },
  spec: { clusterID: 'prov', resourceQuota: { hard: { cpu: '4', memory: '8Gi', pods: 110 } }, ...spec },
});
const input = (spec?: Partial<VirtualNodeSpec>): NodeInput => ({
  virtualNode: virtualNode(spec),
  hostIp: '10.1.1.1',
  port: 11_300,
  version: 'v1.34.4',
  network: 'none',
});
const at = '2026-01-01T00:00:00Z';
const later = '2026-01-01T00:01:00Z';
const patched = (node: Node, spec: Partial<VirtualNodeSpec>): Node => {
  const patch = nodePatch(node, virtualNode(spec));
  return patch ? (mergePatched(node, patch) as Node) : node;
};

test('a new Node needs no patch', () => {
  const node = newNode(
    input({ labels: { a: '1' }, annotations: { n: '1' }, taints: [{ key: 'k', effect: 'NoSchedule' }] }),
    at,
  );
  expect(
    nodePatch(
      node,
      virtualNode({ labels: { a: '1' }, annotations: { n: '1' }, taints: [{ key: 'k', effect: 'NoSchedule' }] }),
    ),
  ).toBeUndefined();
  expect(nodeStatusPatch(node.status, nodeStatus(input(), node.status, later), false)).toBeUndefined();
});

test('what a VirtualNode no longer says is taken off; what others put on the Node stays', () => {
  const node = newNode(
    input({ labels: { a: '1', b: '1' }, annotations: { n: '1' }, taints: [{ key: 'k', effect: 'NoSchedule' }] }),
    at,
  );
  node.metadata.labels = { ...node.metadata.labels, theirs: '1' };
  node.spec = {
    ...node.spec,
    taints: [...(node.spec?.taints ?? []), { key: 'node.kubernetes.io/unreachable', effect: 'NoExecute' }],
  };
  const after = patched(node, { labels: { b: '2' } });
  expect(after.metadata.labels).toMatchObject({ b: '2', theirs: '1' });
  expect(after.metadata.labels).not.toHaveProperty('a');
  expect(after.metadata.annotations).not.toHaveProperty('n');
  expect(after.spec?.taints?.map(({ key }) => key)).toEqual([
    'node.kubernetes.io/unreachable',
    'virtual-node.liqo.io/not-allowed',
  ]);
  expect(nodePatch(after, virtualNode({ labels: { b: '2' } }))).toBeUndefined();
});

test('the labels by which the Node is known cannot be overridden; architecture and system can', () => {
  const { metadata, status } = newNode(
    input({ labels: { 'liqo.io/type': 'x', 'kubernetes.io/arch': 'arm64', 'kubernetes.io/os': 'linux' } }),
    at,
  );
  expect(metadata.labels).toMatchObject({ 'liqo.io/type': 'virtual-node', 'kubernetes.io/arch': 'arm64' });
  expect(status?.nodeInfo).toMatchObject({
    architecture: 'arm64',
    operatingSystem: 'linux',
    kubeletVersion: 'v1.34.4',
  });
});

test('a resource that is no longer granted disappears from capacity and allocatable', () => {
  const node = newNode(input(), at);
  const want = nodeStatus(input({ resourceQuota: { hard: { cpu: '2', memory: '8Gi' } } }), node.status, later);
  const patch = nodeStatusPatch(node.status, want, false);
  expect(patch).toEqual({ capacity: { cpu: '2', pods: null }, allocatable: { cpu: '2', pods: null } });
});

test('heartbeats alone are written only when due, and transition times move only with the status', () => {
  const node = newNode(input(), at);
  const want = nodeStatus(input(), node.status, later);
  expect(nodeStatusPatch(node.status, want, false)).toBeUndefined();
  const due = nodeStatusPatch(node.status, want, true) as {
    conditions: { lastHeartbeatTime: string; lastTransitionTime: string }[];
  };
  expect(Object.keys(due)).toEqual(['conditions']);
  expect(due.conditions.every((c) => c.lastHeartbeatTime === later && c.lastTransitionTime === at)).toBe(true);
});

test.each([
  { hard: { cpu: '4', memory: '8Gi' }, want: 'Ready=True MemoryPressure=False DiskPressure=False PIDPressure=False' },
  { hard: { cpu: '0', memory: '8Gi' }, want: 'Ready=False MemoryPressure=False DiskPressure=False PIDPressure=False' },
  { hard: { cpu: '4' }, want: 'Ready=False MemoryPressure=True DiskPressure=False PIDPressure=False' },
  {
    hard: { cpu: '4', memory: '1Gi', pods: 0, 'ephemeral-storage': '0Gi' },
    want: 'Ready=True MemoryPressure=False DiskPressure=True PIDPressure=True',
  },
])('$hard gives $want', ({ hard, want }) => {
  const { conditions = [] } = nodeStatus(
    input({ resourceQuota: { hard: hard as Record<string, string | number> } }),
    undefined,
    at,
  );
  expect(conditions.map(({ type, status }) => `${type}=${status}`).join(' ')).toBe(want);
});

test('conditions of other writers stay, and what the node lifecycle wrote over ours is taken back', () => {
  const node = newNode(input(), at);
  const theirs = {
    type: 'NetworkUnavailable',
    status: 'False',
    lastTransitionTime: at,
    lastHeartbeatTime: at,
    reason: 'r',
    message: 'm',
  };
  const known = {
    ...node.status,
    conditions: [...(node.status?.conditions ?? []).map((c) => ({ ...c, status: 'Unknown' })), theirs],
  };
  const want = nodeStatus(input(), known, later);
  expect(want.conditions).toContainEqual(theirs);
  expect(want.conditions?.find(({ type }) => type === 'Ready')).toMatchObject({
    status: 'True',
    lastTransitionTime: later,
  });
  expect(nodeStatusPatch(known, want, false)).toHaveProperty('conditions');
});

test('a Node of the same name is ours only by its labels', () => {
  const node = newNode(input(), at);
  expect(isOurs(node, virtualNode())).toBe(true);
  expect(isOurs(node, virtualNode({ clusterID: 'other' }))).toBe(false);
  expect(isOurs({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'vn1' } }, virtualNode())).toBe(false);
});

const verdictsWith = (network: NodeInput['network'], known?: Node['status']): string =>
  (nodeStatus({ ...input(), network }, known, later).conditions ?? [])
    .filter(({ type }) => type === 'Ready' || type === 'NetworkUnavailable')
    .map(({ type, status, reason }) => `${type}=${status} ${reason}`)
    .join(', ');

test('without a network nothing is said about it; with one the Node is Ready only while the link works', () => {
  expect(verdictsWith('none')).toBe('Ready=True KubeletReady');
  expect(verdictsWith('up')).toBe('Ready=True KubeletReady, NetworkUnavailable=False LiqoNetworkingUp');
  expect(verdictsWith('down')).toBe('Ready=False KubeletNotReady, NetworkUnavailable=True LiqoNetworkingDown');
});

test('what was said about a network goes with the network', () => {
  const down = nodeStatus({ ...input(), network: 'down' }, undefined, at);
  expect(verdictsWith('none', down)).toBe('Ready=True KubeletReady');
});

test.each<[string, Parameters<typeof networkState>[0], boolean | undefined, NetworkState]>([
  ['no summary', undefined, undefined, 'none'],
  ['a summary that is still to be computed', { ...foreign(true), status: undefined as never }, undefined, 'unknown'],
  ['no network', foreign(false), undefined, 'none'],
  ['a network without Connection', foreign(true), undefined, 'down'],
  ['a pending link', foreign(true, 'Pending'), undefined, 'down'],
  ['a broken link', foreign(true, 'Error'), undefined, 'down'],
  ['an established link', foreign(true, 'Established'), undefined, 'up'],
  ['a broken link that is not to be looked at', foreign(true, 'Error'), true, 'none'],
])('the link of a peering with %s', (_what, cluster, unchecked, state) =>
  expect(networkState(cluster, unchecked)).toBe(state),
);

function foreign(enabled: boolean, status?: 'Pending' | 'Error' | 'Established'): ForeignCluster {
  const off = { enabled: false, conditions: [] };
  const conditions = status === undefined ? [] : [{ type: 'NetworkConnectionStatus' as const, status }];
  return {
    apiVersion: 'core.liqo.io/v1beta1',
    kind: 'ForeignCluster',
    metadata: { name: 'prov' },
    spec: { clusterID: 'prov' },
    status: {
      role: 'Provider',
      modules: { networking: { enabled, conditions }, authentication: off, offloading: off },
    },
  };
}

test.each([
  { type: 'MemoryPressure' as const, ready: 'True' },
  { type: 'DiskPressure' as const, ready: 'True' },
  { type: 'PIDPressure' as const, ready: 'True' },
])("the provider's $type is shown, in its words", ({ type, ready }) => {
  const provider = [{ type, status: 'True', reason: 'NodesUnderPressure', message: 'all 2 ready nodes' }] as const;
  const { conditions } = nodeStatus({ ...input(), provider }, undefined, at);
  expect(conditions?.find((condition) => condition.type === type)).toMatchObject({
    status: 'True',
    message: 'all 2 ready nodes',
  });
  expect(conditions?.find((condition) => condition.type === 'Ready')?.status).toBe(ready);
});

test('a provider without a ready node makes a Node that is not Ready, and says so', () => {
  const message = 'none of the 3 nodes of the provider is ready';
  const provider = [{ type: 'Ready', status: 'False', reason: 'NoNodeReady', message }] as const;
  const { conditions } = nodeStatus({ ...input(), provider }, undefined, at);
  expect(conditions?.find(({ type }) => type === 'Ready')).toMatchObject({ status: 'False', message });
});

test('while the provider takes no new pods the Node has a taint for the scheduler, and loses it afterwards', () => {
  const cordoned = [{ type: 'Cordoned', status: 'True', reason: 'Cordoned', message: 'no new pods' }] as const;
  const free = [{ type: 'Cordoned', status: 'False', reason: 'NotCordoned', message: '' }] as const;
  const taints = (node: Node): string[] => (node.spec?.taints ?? []).map(({ key, effect }) => `${key}:${effect}`);
  const node = newNode(input(), at);
  const closed = mergePatched(node, nodePatch(node, virtualNode(), cordoned)) as Node;
  expect(taints(closed)).toContain('isthmus.dev/cordoned:NoSchedule');
  expect(nodePatch(closed, virtualNode(), cordoned)).toBeUndefined();
  const open = mergePatched(closed, nodePatch(closed, virtualNode(), free)) as Node;
  expect(taints(open)).toEqual(taints(node));
});
