/** What the status of a pod says here of its remote pod: containers, conditions and addresses, and why some of them are missing. */
import { expect, test } from 'vitest';
import { unlinkedRanges } from '#agent/network/addresses/remote-address.ts';
import type { Pod } from '#shared/domain/kube-object.ts';
import { type Context, decide, type Observed } from './decide.ts';
import { accepted, context, gone, local, none, ready, remote, running, shadow } from './testing/local-and-remote.ts';

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
