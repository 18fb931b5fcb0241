import { expect, test } from 'vitest';
import { unlinkedRanges } from '#agent/network/addresses/remote-address.ts';
import type { Pod } from '#shared/domain/kube-object.ts';
import type { ShadowPod } from '#shared/schema/liqo/shadow-pod.ts';
import { pruneLocalPod, pruneRemotePod, pruneShadowPod } from './cache-transforms.ts';
import { type Context, decide, type Observed } from './decide.ts';
import { shadowPod } from './shadow-pod-object.ts';

const context: Context = {
  consumer: 'cons',
  provider: 'prov',
  nodeName: 'vn1',
  hostIp: '10.1.1.1',
  remoteRanges: [{ real: '10.0.0.0/8', view: '10.0.0.0/8' }],
  isLinked: true,
  now: '2026-01-01T00:00:00Z',
};
const accepted = { kind: 'accepted', remoteNamespace: 'demo-cons' } as const;
const held = { kind: 'held', why: 'not yet' } as const;
const none = { kind: 'none' } as const;

interface Change {
  readonly metadata?: Partial<Pod['metadata']>;
  readonly status?: unknown;
}
const local = ({ metadata, status }: Change = {}): Pod =>
  ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web', namespace: 'demo', uid: 'l1', labels: { 'liqo.io/shadowPod': 'true' }, ...metadata },
    spec: { containers: [{ name: 'app', image: 'i:1' }] },
    status: status ?? { phase: 'Pending' },
  }) as Pod;
const shadow = (change: { uid?: string; status?: unknown; metadata?: object } = {}): ShadowPod => {
  const made = shadowPod({ ...context, pod: local(), remoteNamespace: 'demo-cons' });
  return {
    ...made,
    metadata: { ...made.metadata, uid: change.uid ?? 's1', ...change.metadata },
    status: change.status ?? { phase: 'Pending' },
  } as ShadowPod;
};
const ready = { type: 'Ready', status: 'True', lastTransitionTime: '2025-12-31T00:00:00Z' };
const running = {
  phase: 'Running',
  podIP: '10.9.0.1',
  podIPs: [{ ip: '10.9.0.1' }],
  hostIP: '1.1.1.1',
  conditions: [{ ...ready, observedGeneration: 7 }],
  containerStatuses: [{ name: 'app', ready: true, restartCount: 1 }],
};
const remote = ({ metadata, status }: Change = {}): Pod =>
  ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: 'web',
      namespace: 'demo-cons',
      uid: 'r1',
      annotations: { 'isthmus.dev/local-pod-uid': 'l1' },
      ownerReferences: [
        { apiVersion: 'offloading.liqo.io/v1beta1', kind: 'ShadowPod', name: 'web', uid: 's1', controller: true },
      ],
      ...metadata,
    },
    status: status ?? running,
  }) as Pod;
const aborted = { phase: 'Failed', reason: 'OffloadingAborted' };
const gone = { deletionTimestamp: '2026-01-01T00:00:00Z' };

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

const statusOf = (observed: Partial<Observed>): Record<string, unknown> => {
  const action = decide({ mapping: accepted, nodeReady: true, ...observed }, context).find(
    ({ do: what }) => what === 'status',
  );
  return action?.do === 'status' ? action.patch : {};
};

test('status comes back as the local node would have written it', () => {
  expect(statusOf({ local: local(), shadow: shadow(), remote: remote() })).toEqual({
    phase: 'Running',
    podIP: '10.9.0.1',
    podIPs: [{ ip: '10.9.0.1' }],
    hostIP: '10.1.1.1',
    hostIPs: [{ ip: '10.1.1.1' }],
    conditions: [ready],
    containerStatuses: [{ name: 'app', ready: true, restartCount: 1 }],
  });
});

test('the label of an offloaded pod comes with its first status, in one write', () => {
  const fresh = local({ metadata: { labels: {} } });
  const actions = decide(
    { local: fresh, shadow: shadow(), remote: remote(), mapping: accepted, nodeReady: true },
    context,
  );
  expect(actions).toEqual([
    expect.objectContaining({ do: 'status', labels: { 'liqo.io/shadowPod': 'true' }, record: { uid: 'r1' } }),
  ]);
});

test('a pod of a node that is not ready is not ready, in spite of its last report', () => {
  const { conditions } = statusOf({ local: local(), shadow: shadow(), remote: remote(), nodeReady: false });
  expect(conditions).toMatchObject([
    { type: 'Ready', status: 'False', reason: 'RemoteUnavailable', lastTransitionTime: context.now },
  ]);
});

test('a remote pod that is deleted there, but will be made again, only stops being ready', () => {
  const known = local({ status: { ...running, conditions: [ready], hostIP: '10.1.1.1' } });
  const ended = {
    phase: 'Running',
    containerStatuses: [{ name: 'app', restartCount: 1, state: { terminated: { exitCode: 137 } } }],
  };
  const patch = statusOf({ local: known, shadow: shadow(), remote: remote({ metadata: gone, status: ended }) });
  expect(patch).toEqual({
    conditions: [
      {
        ...ready,
        status: 'False',
        reason: 'RemotePodMissing',
        message: expect.any(String),
        lastTransitionTime: context.now,
      },
    ],
  });
});

test('an end that was not seen is told with the exit code that its phase implies', () => {
  const known = local({
    status: {
      phase: 'Running',
      conditions: [ready],
      containerStatuses: [{ name: 'app', ready: true, restartCount: 0, state: { running: {} } }],
    },
  });
  expect(statusOf({ local: known, shadow: shadow({ status: { phase: 'Failed' } }) })).toMatchObject({
    phase: 'Failed',
    reason: 'RemotePodTerminated',
    conditions: [{ type: 'Ready', status: 'False' }],
    containerStatuses: [{ ready: false, state: { terminated: { exitCode: 1 } } }],
  });
});

test('the status of pods that were told to wait is cleaned when they run', () => {
  const waited = local({ status: { phase: 'Pending', reason: 'OffloadingBackOff', message: 'm' } });
  expect(statusOf({ local: waited, shadow: shadow(), remote: remote() })).toMatchObject({
    reason: null,
    message: null,
  });
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

const patchOf = (observed: Observed, more: Partial<Context> = {}) =>
  decide(observed, { ...context, ...more }).flatMap((action) => (action.do === 'status' ? [action.patch] : []))[0];

test.each([
  { when: 'the range of the remote pod has another name here', views: ['10.8.0.0/16'], podIP: '10.8.0.1' },
  { when: 'the range of the remote pod has no name here yet', views: [], podIP: undefined },
])('where $when, the local pod has an address that leads to it, or none', ({ views, podIP }) => {
  const [view] = views;
  const remoteRanges = [{ real: '10.9.0.0/16', ...(view === undefined ? {} : { view }) }];
  const observed = { local: local(), shadow: shadow(), remote: remote(), mapping: accepted, nodeReady: true };
  const actions = decide(observed, { ...context, remoteRanges });
  const patch = actions.flatMap((action) => (action.do === 'status' ? [action.patch] : []))[0] as Pod['status'];
  expect(patch).toMatchObject({ phase: 'Running', hostIP: '10.1.1.1' });
  expect([patch?.podIP, patch?.podIPs?.map(({ ip }) => ip)]).toEqual([podIP, podIP && [podIP]]);
});

test('where no addresses cross, the local pod has none, and loses the one that it had', () => {
  const shown = { podIP: '10.9.0.1', podIPs: [{ ip: '10.9.0.1' }] };
  const observed = { local: local(), shadow: shadow(), remote: remote(), mapping: accepted, nodeReady: true };
  expect(patchOf(observed, { showsAddresses: false })).not.toHaveProperty('podIP');
  const before = { ...observed, local: local({ status: { phase: 'Running', ...shown } }) };
  expect(patchOf(before, { showsAddresses: false })).toMatchObject({ podIP: null, podIPs: null });
});

test.each([
  ['of another peer, as this cluster calls it', '10.70.0.9'],
  ['of the metadata service', '169.254.169.254'],
  ['of a node here', '192.0.2.11'],
  ['of loopback', '127.0.0.1'],
  ['of IPv6', 'fd00:ec2::254'],
  ['that is none', 'localhost'],
])('an address %s that the provider says its pod has is dropped, and the pod says so', (_what, podIP) => {
  const remoteRanges = [{ real: '10.9.0.0/16', view: '10.71.0.0/16' }];
  const forged = remote({ status: { ...remote().status, podIP, podIPs: [{ ip: podIP }] } });
  const observed = { local: local(), shadow: shadow(), remote: forged, mapping: accepted, nodeReady: true };
  const actions = decide(observed, { ...context, remoteRanges });
  const patch = patchOf(observed, { remoteRanges });
  expect([patch?.podIP, patch?.podIPs]).toEqual([undefined, undefined]);
  expect(patch?.conditions).toContainEqual(
    expect.objectContaining({ type: 'isthmus.dev/PodIPShown', status: 'False', reason: 'OutsideRanges' }),
  );
  expect(actions).toContainEqual(
    expect.objectContaining({ do: 'event', reason: 'PodIPHidden', message: expect.stringContaining(podIP) }),
  );
});

test('without a link an address is shown only in a range that a policy names for the provider', () => {
  const observed = { local: local(), shadow: shadow(), remote: remote(), mapping: accepted, nodeReady: true };
  const unlinked = { remoteRanges: [], isLinked: false };
  expect(patchOf(observed, unlinked)).not.toHaveProperty('podIP');
  expect(patchOf(observed, unlinked)?.conditions).toContainEqual(
    expect.objectContaining({ type: 'isthmus.dev/PodIPShown', status: 'False', reason: 'NoLink' }),
  );
  // It is the normal state of a peering without a network: no warning for each pod.
  expect(decide(observed, { ...context, ...unlinked }).filter((action) => action.do === 'event')).toEqual([]);
  const named = unlinkedRanges([], ['10.9.0.0/16']);
  expect(patchOf(observed, { ...unlinked, remoteRanges: named })).toMatchObject({ podIP: '10.9.0.1' });
});

test('a pod that the provider cannot make says so here, in the words of the provider, once', () => {
  const status = { phase: 'Unknown', reason: 'FailedCreatePod', message: 'exceeded quota: guests' };
  const observed = { local: local(), shadow: shadow({ status }), mapping: accepted, nodeReady: true };
  const actions = decide(observed, context);
  const written = actions.find((action) => action.do === 'status');
  const message = 'cluster prov cannot run the pod (FailedCreatePod): exceeded quota: guests';
  expect(written).toMatchObject({ patch: { reason: 'OffloadingRefused', message } });
  expect(actions).toContainEqual({ do: 'event', type: 'Warning', reason: 'FailedReflection', message });
  const told = local({ status: { phase: 'Pending', ...(written?.do === 'status' ? written.patch : {}) } });
  expect(decide({ ...observed, local: told }, context)).toEqual([]);
  const made = decide({ ...observed, local: told, shadow: shadow(), remote: remote() }, context);
  expect(made.find((action) => action.do === 'status')).toMatchObject({
    patch: { phase: 'Running', reason: null, message: null },
  });
});

test('an aborted pod has no container that runs and no condition that is true: nothing of it is left', () => {
  const began = { running: { startedAt: '2025-12-31T00:00:00Z' } };
  const ended = { terminated: { exitCode: 0, reason: 'Completed', finishedAt: '2025-12-31T00:00:00Z' } };
  const status = {
    phase: 'Running',
    conditions: [ready, { type: 'ContainersReady', status: 'True' }, { type: 'DisruptionTarget', status: 'False' }],
    initContainerStatuses: [
      { name: 'setup', ready: true, restartCount: 0, state: ended },
      { name: 'sidecar', ready: true, started: true, restartCount: 1, state: began },
    ],
    containerStatuses: [{ name: 'app', ready: true, started: true, restartCount: 3, state: began }],
  };
  const patch = patchOf({ local: local({ status }), mapping: none, nodeReady: true });
  const terminated = { exitCode: 1, reason: 'OffloadingAborted', finishedAt: context.now };
  expect(patch).toMatchObject({
    phase: 'Failed',
    reason: 'OffloadingAborted',
    conditions: [{ status: 'False' }, { status: 'False' }, { status: 'False' }],
    initContainerStatuses: [
      { name: 'setup', state: ended },
      { name: 'sidecar', ready: false, started: false, restartCount: 1, state: { terminated } },
    ],
    containerStatuses: [{ name: 'app', ready: false, started: false, restartCount: 3, state: { terminated } }],
  });
});

test('an address that belongs to something else here is not shown while there is no link, and the pod says why, once', () => {
  const remoteRanges = [{ real: '10.9.0.0/16', holder: 'Network liqo/pod-cidr' }];
  const observed = { local: local(), shadow: shadow(), remote: remote(), mapping: accepted, nodeReady: true };
  const actions = decide(observed, { ...context, remoteRanges });
  const [event] = actions.filter((action) => action.do === 'event');
  expect(event).toMatchObject({ type: 'Warning', reason: 'PodIPHidden' });
  const patch = patchOf(observed, { remoteRanges });
  expect(patch).toMatchObject({ phase: 'Running', containerStatuses: [{ ready: true }] });
  expect(patch).not.toHaveProperty('podIP');
  expect(patch).not.toHaveProperty('podIPs');
  const [shown] = (patch?.conditions ?? []) as readonly { type: string; status: string; message: string }[];
  expect(shown).toMatchObject({ type: 'isthmus.dev/PodIPShown', status: 'False' });
  expect(shown?.message).toContain('10.9.0.1 at cluster prov, which is in 10.9.0.0/16 of this cluster');

  const known = local({ status: { ...patch } });
  const annotations = { 'isthmus.dev/remote-pod': JSON.stringify({ uid: 'r1' }) };
  const again = { ...known, metadata: { ...known.metadata, annotations } };
  expect(decide({ ...observed, local: again }, { ...context, remoteRanges })).toEqual([]);
  const linked = patchOf(
    { ...observed, local: again },
    { remoteRanges: [{ real: '10.9.0.0/16', view: '10.71.0.0/16' }] },
  );
  expect(linked).toMatchObject({ podIP: '10.71.0.1' });
  expect(JSON.stringify(linked?.conditions)).not.toContain('PodIPShown');
});
