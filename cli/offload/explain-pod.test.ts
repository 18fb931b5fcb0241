import { expect, test } from 'vitest';
import type { Node, Pod } from '#shared/domain/kube-object.ts';
import type { NamespaceOffloading } from '#shared/schema/liqo/namespace-offloading.ts';
import { explainPod, type PodFacts, type PodStory, podStoryText } from './explain-pod.ts';

const tolerations = [{ key: 'virtual-node.liqo.io/not-allowed', operator: 'Exists', effect: 'NoExecute' }];
const seen = { annotations: { 'isthmus.dev/remote-pod': '{"uid":"r1"}' } };
const pod = (more: { metadata?: object; spec?: object; status?: object } = {}): Pod =>
  ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web', namespace: 'demo', ...more.metadata },
    spec: { containers: [], nodeName: 'milan', tolerations, ...more.spec },
    status: { phase: 'Pending', ...more.status },
  }) as unknown as Pod;
const node = (conditions: Record<string, readonly [string, string]>, virtual = true): Node =>
  ({
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name: 'milan',
      labels: virtual ? { 'liqo.io/type': 'virtual-node', 'liqo.io/remote-cluster-id': 'milan' } : {},
    },
    status: { conditions: Object.entries(conditions).map(([type, [status, message]]) => ({ type, status, message })) },
  }) as unknown as Node;
const up = node({ Ready: ['True', ''] });
const offloading = {
  spec: { podOffloadingStrategy: 'LocalAndRemote' },
  status: { offloadingPhase: 'InProgress', remoteNamespaceName: 'demo-rome' },
} as unknown as NamespaceOffloading;
const waitingState = { waiting: { reason: 'ImagePullBackOff', message: 'no such image' } };

interface Row extends Partial<PodFacts> {
  readonly when: string;
  readonly pod: Pod;
  readonly side: PodStory['side'];
  readonly says: string;
}
const unbound = { nodeName: undefined };

test.each<Row>([
  {
    when: 'the provider refused it',
    pod: pod({ status: { reason: 'OffloadingRefused', message: 'quota of milan exceeded: cpu' } }),
    side: 'provider',
    says: 'quota of milan exceeded: cpu',
  },
  {
    when: 'the namespace is not there yet',
    pod: pod({ status: { reason: 'OffloadingBackOff', message: 'the provider has not yet created its namespace' } }),
    side: 'provider',
    says: 'not yet created its namespace',
  },
  { when: 'the provider has made no pod', pod: pod(), side: 'provider', says: 'milan to make a pod of it' },
  {
    when: "the provider's scheduler finds no node",
    pod: pod({
      metadata: seen,
      status: { conditions: [{ type: 'PodScheduled', status: 'False', message: '0/3 nodes are available' }] },
    }),
    side: 'provider',
    says: 'the scheduler of cluster milan: 0/3 nodes',
  },
  {
    when: 'an image is missing',
    pod: pod({ metadata: seen, status: { containerStatuses: [{ name: 'app', state: waitingState }] } }),
    side: 'provider',
    says: 'container app: ImagePullBackOff, no such image',
  },
  {
    when: 'the link is down',
    pod: pod({ metadata: seen }),
    node: node({ Ready: ['False', 'the link to the provider does not work'], NetworkUnavailable: ['True', ''] }),
    side: 'link',
    says: 'the link to the provider does not work',
  },
  {
    when: 'the provider is silent',
    pod: pod({ metadata: seen }),
    node: node({ Ready: ['Unknown', 'Kubelet stopped posting node status.'] }),
    side: 'link',
    says: 'stopped posting',
  },
  {
    when: 'it runs and is ready',
    pod: pod({ metadata: seen, status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] } }),
    side: undefined,
    says: 'Waits for:  nothing',
  },
  {
    when: 'it waits at a scheduling gate',
    pod: pod({ spec: { ...unbound, schedulingGates: [{ name: 'isthmus.dev/offloading' }] } }),
    side: 'consumer',
    says: 'held back by scheduling gates: isthmus.dev/offloading',
  },
  {
    when: 'it was made before its namespace was offloaded',
    pod: pod({ spec: { ...unbound, tolerations: [] } }),
    side: 'consumer',
    says: 'made before its namespace was offloaded',
  },
  {
    when: 'its namespace is not offloaded',
    pod: pod({ spec: unbound }),
    offloading: undefined,
    side: 'consumer',
    says: 'isthmus offload namespace demo',
  },
  {
    when: 'the only virtual node takes no new pods',
    pod: pod({ spec: unbound }),
    virtualNodes: [{ ...up, spec: { taints: [{ key: 'isthmus.dev/cordoned', effect: 'NoSchedule' }] } } as Node],
    side: 'consumer',
    says: 'milan takes no new pods',
  },
  {
    when: 'it runs on a node of its own cluster',
    pod: pod({ status: { phase: 'Running' } }),
    node: node({ Ready: ['True', ''] }, false),
    side: undefined,
    says: 'node milan of this cluster',
  },
  { when: 'its node is gone', pod: pod(), node: undefined, side: 'consumer', says: 'which does not exist' },
])('when $when, the story says so and names the side', ({ when: _, side, says, ...facts }) => {
  const story = explainPod({ node: up, offloading, virtualNodes: [up], ...facts });
  expect(story.side).toBe(side);
  expect(podStoryText(story)).toContain(says);
});
