import { expect, test } from 'vitest';
import type { Node, Pod } from '#shared/domain/kube-object.ts';
import { forcedAt } from './node-failure-controller.ts';

const at = (minute: number): string => new Date(Date.UTC(2026, 0, 1, 0, minute)).toISOString();
const owner = { apiVersion: 'offloading.liqo.io/v1beta1', kind: 'ShadowPod', name: 'web', uid: 's1', controller: true };
const pod = (metadata: object): Pod =>
  ({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web', ownerReferences: [owner], ...metadata } }) as Pod;
const node = (status: string, minute: number): Node =>
  ({
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: 'w1' },
    status: { conditions: [{ type: 'Ready', status, lastTransitionTime: at(minute) }] },
  }) as unknown as Node;
const going = { deletionTimestamp: at(10) };
const replicaSet = { ...owner, kind: 'ReplicaSet' };

test.each([
  { when: 'the pod goes and its node died before', pod: pod(going), node: node('Unknown', 5), minute: 15 },
  { when: 'the pod goes and its node died later', pod: pod(going), node: node('False', 12), minute: 17 },
  { when: 'the node is ready', pod: pod(going), node: node('True', 0), minute: undefined },
  { when: 'the pod does not go', pod: pod({}), node: node('Unknown', 5), minute: undefined },
  { when: 'the node is gone altogether', pod: pod(going), node: undefined, minute: undefined },
  {
    when: 'the pod only carries our label',
    pod: pod({ ...going, ownerReferences: [replicaSet] }),
    node: node('Unknown', 5),
    minute: undefined,
  },
])('when $when, force comes at minute $minute', ({ pod: of, node: on, minute }) => {
  expect(forcedAt(of, on, 5 * 60_000)).toBe(minute === undefined ? undefined : Date.parse(at(minute)));
});
