import { expect, test } from 'vitest';
import type { CoreEvent } from '#shared/domain/core-kinds.ts';
import type { KubeObject } from '#shared/domain/kube-object.ts';
import { concerned, decideEvent, localEvent, pruneCopy, pruneRemote } from './provider-event.ts';

const pair = { consumer: 'cons', provider: 'prov' };
const remote = (change: object = {}): CoreEvent =>
  ({
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: 'web.1', namespace: 'demo-cons', uid: 'e1', resourceVersion: '7' },
    involvedObject: { kind: 'Pod', name: 'web', uid: 'r1', fieldPath: 'spec.containers{app}' },
    reason: 'BackOff',
    message: 'm',
    count: 2,
    source: { component: 'kubelet', host: 'n' },
    ...change,
  }) as CoreEvent;
const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web', namespace: 'demo', uid: 'l1' } } as KubeObject;

test.each([
  { of: {}, is: { kind: 'Pod', name: 'web' } },
  { of: { involvedObject: { kind: 'ShadowPod', name: 'web' } }, is: { kind: 'Pod', name: 'web' } },
  {
    of: { involvedObject: { kind: 'ShadowEndpointSlice', name: 'web-1' } },
    is: { kind: 'EndpointSlice', name: 'web-1' },
  },
  { of: { involvedObject: { kind: 'ReplicaSet', name: 'web' } }, is: undefined },
  { of: { source: { component: 'kubelet (remote)' } }, is: undefined },
])('B029: an event with $of is about $is', ({ of, is }) => {
  expect(concerned(remote(of))).toEqual(is);
  expect(concerned(pruneRemote(remote(of)))).toEqual(is);
});

test('of an event about nothing that is known here only its name is kept, of every other one all', () => {
  const claim = remote({ involvedObject: { kind: 'PersistentVolumeClaim', name: 'data' } });
  const metadata = { name: 'web.1', namespace: 'demo-cons', uid: 'e1', resourceVersion: '7' };
  expect(pruneRemote(claim)).toEqual({ apiVersion: 'v1', kind: 'Event', metadata, involvedObject: {} });
  expect(pruneRemote(remote())).toEqual(remote());
});

test('B029: the copy is about the object here and says that it comes from there', () => {
  const copy = localEvent(remote(), pod, pair);
  expect(copy).toMatchObject({
    metadata: { name: 'web.1', namespace: 'demo' },
    involvedObject: { kind: 'Pod', name: 'web', namespace: 'demo', uid: 'l1', fieldPath: 'spec.containers{app}' },
    source: { component: 'kubelet (remote)', host: 'n' },
    count: 2,
  });
  expect(copy.metadata).not.toHaveProperty('resourceVersion');
  expect(localEvent(remote({ source: {}, reportingComponent: 'isthmus-agent' }), pod, pair).source?.component).toBe(
    'isthmus-agent (remote)',
  );
});

const copy = localEvent(remote(), pod, pair);
test.each([
  { when: 'new', copy: undefined, wanted: copy, does: 'create' },
  { when: 'the same', copy, wanted: copy, does: 'nothing' },
  { when: 'counted on', copy, wanted: localEvent(remote({ count: 3 }), pod, pair), does: 'patch' },
  { when: 'gone there', copy, wanted: undefined, does: 'delete' },
  {
    when: 'of the name of another event',
    copy: { ...copy, metadata: { name: 'web.1' } },
    wanted: copy,
    does: 'nothing',
  },
  {
    when: 'gone there, and another has its name',
    copy: { ...copy, metadata: { name: 'web.1' } },
    wanted: undefined,
    does: 'nothing',
  },
])('an event that is $when: $does', ({ copy: have, wanted, does }) => {
  expect(decideEvent(have as CoreEvent | undefined, wanted, pair).do).toBe(does);
  const kept = have && pruneCopy(have as CoreEvent);
  expect(decideEvent(kept, wanted, pair).do).toBe(does);
  expect(kept && pruneCopy(kept)).toEqual(kept);
});
