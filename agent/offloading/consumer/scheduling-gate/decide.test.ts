/** Which pods wait for their namespace, and what lets them go. */
import { expect, test } from 'vitest';
import { mergePatched } from '#kube/http/testing/merge-patched.ts';
import type { Pod } from '#shared/domain/kube-object.ts';
import type { NamespaceOffloading } from '#shared/schema/liqo/namespace-offloading.ts';
import { gatePatch } from '../admission/pod.ts';
import { isGated, releasePatch, waitsFor } from './decide.ts';

const offloading = (more: { strategy?: string; metadata?: object; clusters?: Record<string, object[]> } = {}) =>
  ({
    metadata: { namespace: 'demo', name: 'offloading', ...more.metadata },
    spec: { podOffloadingStrategy: more.strategy ?? 'Remote' },
    ...(more.clusters && { status: { remoteNamespacesConditions: more.clusters } }),
  }) as NamespaceOffloading;
const required = { type: 'OffloadingRequired', status: 'True' };
const creating = { type: 'Ready', status: 'False', message: 'namespace demo-cons is asked for' };
const ready = { type: 'Ready', status: 'True' };

test.each([
  { when: 'nothing is offloaded', given: undefined, waits: undefined },
  { when: 'pods may run here as well', given: offloading({ strategy: 'LocalAndRemote' }), waits: undefined },
  { when: 'the offloading is going', given: offloading({ metadata: { deletionTimestamp: 'now' } }), waits: undefined },
  { when: 'the offloading has no status yet', given: offloading(), waits: /has just begun/ },
  { when: 'no cluster is selected', given: offloading({ clusters: {} }), waits: /no virtual node matches/ },
  {
    when: 'the only one is being prepared',
    given: offloading({ clusters: { a: [required, creating] } }),
    waits: /demo-cons is asked for/,
  },
  {
    when: 'one of two is ready',
    given: offloading({ clusters: { a: [required, creating], b: [required, ready] } }),
    waits: undefined,
  },
  {
    when: 'the ready one is not selected any more',
    given: offloading({ clusters: { a: [{ ...required, status: 'False' }, ready] } }),
    waits: /no virtual node matches/,
  },
])('when $when, pods wait: $waits', ({ given, waits }) => {
  const why = waitsFor(given);
  if (waits === undefined) expect(why).toBeUndefined();
  else expect(why).toMatch(waits);
});

const pod = (spec: object = {}): Pod =>
  ({ metadata: { name: 'web', uid: 'u1' }, spec: { containers: [], ...spec } }) as unknown as Pod;

test('a pod that is bound or chose virtual nodes itself gets no gate, and none gets two', () => {
  expect(gatePatch(pod(), offloading())).toHaveLength(2);
  expect(gatePatch(pod({ nodeName: 'n1' }), offloading())).toEqual([]);
  expect(gatePatch(pod({ runtimeClassName: 'liqo' }), offloading())).toEqual([]);
  expect(gatePatch(pod({ schedulingGates: [{ name: 'isthmus.dev/offloading' }] }), offloading())).toEqual([]);
});

test('release takes off our gate and mark, wherever they are, and leaves those of others', () => {
  const gated = mergePatched(pod({ schedulingGates: [{ name: 'theirs' }, { name: 'isthmus.dev/offloading' }] }), {
    metadata: { labels: { 'isthmus.dev/waiting-for-offloading': 'true', app: 'web' } },
  }) as Pod;
  expect(isGated(gated)).toBe(true);
  expect(releasePatch(gated).map(({ op, path }) => `${op} ${path}`)).toEqual([
    'test /metadata/uid',
    'test /spec/schedulingGates/1/name',
    'remove /spec/schedulingGates/1',
    'remove /metadata/labels/isthmus.dev~1waiting-for-offloading',
  ]);
  expect(releasePatch(pod({ schedulingGates: [{ name: 'theirs' }] }))).toEqual([]);
});
