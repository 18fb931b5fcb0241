/** What is done to a pod, its ShadowPod and its labels, for each state in which they can be found. */
import { expect, test } from 'vitest';
import { pruneLocalPod, pruneRemotePod, pruneShadowPod } from './cache-transforms.ts';
import { decide, type Observed } from './decide.ts';
import { accepted, context, gone, local, none, ready, remote, shadow } from './testing/local-and-remote.ts';

const held = { kind: 'held', why: 'not yet' } as const;
const aborted = { phase: 'Failed', reason: 'OffloadingAborted' };

interface Row extends Partial<Observed> {
  readonly when: string;
  readonly does: readonly string[];
}

test.each<Row>([
  { when: 'nothing is there', does: [] },
  { when: 'only the ShadowPod is left', shadow: shadow(), does: ['deleteShadow'] },
  { when: 'only a ShadowPod on its way out is left', shadow: shadow({ metadata: gone }), does: [] },
  { when: 'the pod is new', local: local({ metadata: { labels: {} } }), does: ['createShadow'] },
  { when: 'the pod is new in a namespace that is still being made', mapping: held, local: local(), does: ['status'] },
  {
    when: 'the pod ran and its namespace is being made again',
    mapping: held,
    local: local({ status: { phase: 'Running', containerStatuses: [{}] } }),
    does: [],
  },
  {
    when: 'the pod is new and its namespace is not offloaded',
    mapping: none,
    local: local(),
    does: ['status', 'event'],
  },
  {
    when: 'that was said already',
    mapping: none,
    local: local({
      status: {
        phase: 'Pending',
        reason: 'OffloadingBackOff',
        message: 'namespace demo is not offloaded to node vn1; offload it, or schedule the pod elsewhere',
        conditions: [
          {
            type: 'Ready',
            status: 'False',
            reason: 'OffloadingBackOff',
            message: 'namespace demo is not offloaded to node vn1; offload it, or schedule the pod elsewhere',
            lastTransitionTime: '2026-01-01T00:00:00Z',
          },
        ],
      },
    }),
    does: [],
  },
  {
    when: 'the namespace is no longer offloaded',
    mapping: none,
    local: local({ status: { phase: 'Running' } }),
    does: ['status', 'event'],
  },
  {
    when: 'a finished pod of a namespace that is not offloaded',
    mapping: none,
    local: local({ status: { phase: 'Succeeded' } }),
    does: [],
  },
  {
    when: 'a terminating pod of a namespace that is not offloaded',
    mapping: none,
    local: local({ metadata: gone }),
    does: ['makeSureItEnded', 'removeLocal'],
  },
  {
    when: 'an aborted pod whose ShadowPod is there again',
    local: local({ status: aborted }),
    shadow: shadow(),
    does: ['deleteShadow'],
  },
  { when: 'an aborted pod', local: local({ status: aborted }), does: [] },
  { when: 'a finished pod whose remote pod is gone', local: local({ status: { phase: 'Failed' } }), does: [] },
  {
    when: 'a finished pod whose remote pod says the same',
    local: local({ status: { phase: 'Succeeded' } }),
    shadow: shadow(),
    remote: remote({ status: { phase: 'Succeeded' } }),
    does: [],
  },
  {
    when: 'the ShadowPod stands for an earlier pod of this name',
    local: local(),
    shadow: shadow({ metadata: { annotations: { 'isthmus.dev/local-pod-uid': 'l0' } } }),
    does: ['deleteShadow'],
  },
  {
    when: 'the remote pod belongs to an earlier ShadowPod',
    local: local(),
    shadow: shadow({ uid: 's2' }),
    remote: remote(),
    does: [],
  },
  { when: 'the remote pod runs', local: local(), shadow: shadow(), remote: remote(), does: ['status'] },
  {
    when: 'no kubelet has seen the remote pod yet',
    local: local(),
    shadow: shadow(),
    remote: remote({ status: { phase: 'Pending' } }),
    does: [],
  },
  {
    when: 'the remote pod is bound, and no kubelet has looked at it yet',
    local: local(),
    shadow: shadow(),
    remote: remote({ status: { phase: 'Pending', conditions: [{ type: 'PodScheduled', status: 'True' }] } }),
    does: [],
  },
  {
    when: 'the pod ran, and no kubelet has seen its new remote pod yet',
    local: local({ status: { phase: 'Running', conditions: [ready], containerStatuses: [{}] } }),
    shadow: shadow(),
    remote: remote({ status: { phase: 'Pending' } }),
    does: [],
  },
  {
    when: 'the remote pod can run nowhere',
    local: local(),
    shadow: shadow(),
    remote: remote({
      status: { phase: 'Pending', conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable' }] },
    }),
    does: ['status'],
  },
  {
    when: 'the label of an offloaded pod is removed by hand',
    local: local({ metadata: { labels: {} }, status: { phase: 'Running', containerStatuses: [{}] } }),
    shadow: shadow(),
    does: ['label'],
  },
  {
    when: 'labels differ',
    local: local({ metadata: { labels: { a: 'b', 'liqo.io/shadowPod': 'true' } } }),
    shadow: shadow(),
    does: ['updateShadow'],
  },
  {
    when: 'labels differ while the node is not ready',
    nodeReady: false,
    local: local({
      metadata: { labels: { a: 'b', 'liqo.io/shadowPod': 'true', 'liqo.io/remote-unavailable': 'true' } },
    }),
    shadow: shadow(),
    does: [],
  },
  { when: 'the node becomes unready', nodeReady: false, local: local(), shadow: shadow(), does: ['label'] },
  {
    when: 'the node is ready again',
    local: local({ metadata: { labels: { 'liqo.io/shadowPod': 'true', 'liqo.io/remote-unavailable': 'true' } } }),
    shadow: shadow(),
    does: ['label'],
  },
  {
    when: 'only the creator label of the provider differs',
    local: local(),
    shadow: shadow({ metadata: { labels: { ...shadow().metadata.labels, 'liqo.io/creator-user': 'u' } } }),
    does: [],
  },
  {
    when: 'the pod terminates and its remote pod runs',
    local: local({ metadata: gone }),
    shadow: shadow(),
    remote: remote(),
    does: ['deleteShadow', 'status'],
  },
  {
    when: 'the pod terminates and only its remote pod is left',
    local: local({ metadata: gone }),
    remote: remote({ metadata: gone }),
    does: ['status'],
  },
  {
    when: 'the pod terminates and nothing is left',
    local: local({ metadata: gone }),
    does: ['makeSureItEnded', 'removeLocal'],
  },
  {
    when: 'the pod terminates, nothing is left, and a finalizer waits for its end',
    local: local({ metadata: { ...gone, finalizers: ['batch.kubernetes.io/job-tracking'] } }),
    does: ['makeSureItEnded', 'status', 'removeLocal'],
  },
  {
    when: 'the remote pod ended unseen',
    local: local(),
    shadow: shadow({ status: { phase: 'Failed' } }),
    does: ['status'],
  },
])('when $when: $does', ({ when: _, does, ...observed }) => {
  const actions = decide({ mapping: accepted, nodeReady: true, ...observed }, context);
  expect(actions.map((action) => action.do)).toEqual(does);
});

test('an image change becomes a patch of that image alone, guarded by name and uid', () => {
  const edited = local();
  edited.spec!.containers[0]!.image = 'i:2';
  const [action] = decide({ local: edited, shadow: shadow(), mapping: accepted, nodeReady: true }, context);
  expect(action).toEqual({
    do: 'updateShadow',
    uid: 's1',
    patch: [
      { op: 'test', path: '/metadata/uid', value: 's1' },
      { op: 'test', path: '/spec/pod/containers/0/name', value: 'app' },
      { op: 'add', path: '/spec/pod/containers/0/image', value: 'i:2' },
    ],
  });
});

test('what caches keep is enough to decide, and pruning twice is pruning once', () => {
  const [l, s, r] = [local(), shadow(), remote()];
  const whole = decide({ local: l, shadow: s, remote: r, mapping: accepted, nodeReady: true }, context);
  const lean = { local: pruneLocalPod(l), shadow: pruneShadowPod(s), remote: pruneRemotePod(r) };
  expect(decide({ ...lean, mapping: accepted, nodeReady: true }, context)).toEqual(whole);
  expect(pruneLocalPod(lean.local)).toEqual(lean.local);
  expect(pruneShadowPod(lean.shadow)).toEqual(lean.shadow);
  expect(pruneRemotePod(lean.remote)).toEqual(lean.remote);
});
