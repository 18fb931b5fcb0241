/** What a container that `kubectl debug` adds to an offloaded pod is given. */
import { expect, test } from 'vitest';
import type { Pod } from '#shared/domain/kube-object.ts';
import type { ShadowPod } from '#shared/schema/liqo/shadow-pod.ts';
import { pruneLocalPod } from './cache-transforms.ts';
import { type Context, decide } from './decide.ts';
import { debugContainersOf, shadowPod } from './shadow-pod-object.ts';

const field = (name: string, fieldPath: string) => ({ name, valueFrom: { fieldRef: { fieldPath } } });
const env = [field('NS', 'metadata.namespace')];
const names = { consumer: 'cons', provider: 'prov', nodeName: 'vn1' };
const context: Context = {
  ...names,
  hostIp: '10.1.1.1',
  remoteRanges: [],
  isLinked: true,
  now: '2026-01-01T00:00:00Z',
};
const local = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'web', namespace: 'demo', uid: 'l1', labels: { 'liqo.io/shadowPod': 'true' } },
  spec: { containers: [{ name: 'app', image: 'i:1' }] },
  status: { phase: 'Running' },
} as unknown as Pod;
const made = shadowPod({ ...names, pod: local, remoteNamespace: 'demo-cons' });
const shadow = { ...made, metadata: { ...made.metadata, uid: 's1' } } as ShadowPod;

test('a container that kubectl debug adds is told of the pod, and of the API server, what the others are told', () => {
  const debug = {
    name: 'debugger',
    image: 'busybox',
    targetContainerName: 'app',
    env: [...env, field('ID', 'metadata.uid')],
  };
  const pod = {
    metadata: { name: 'web', namespace: 'demo', uid: 'u-1' },
    spec: { containers: [], ephemeralContainers: [debug], serviceAccountName: 'runner' },
  } as unknown as Pod;
  const [told] = debugContainersOf({ pod, consumer: 'cons', home: { port: 6443, addresses: [] } });
  expect(told).toMatchObject({ name: 'debugger', targetContainerName: 'app' });
  expect(told?.env).toEqual(
    expect.arrayContaining([
      { name: 'NS', value: 'demo' },
      { name: 'ID', value: 'u-1' },
      { name: 'KUBERNETES_SERVICE_PORT', value: '6443' },
    ]),
  );
});

test('a container that kubectl debug adds is told the namespace of the pod, once, and stays as it was added', () => {
  const withDebug = (...names: string[]) => {
    const ephemeralContainers = names.map((name) => ({ name, image: 'd', env }));
    return { ...local, spec: { ...local.spec, ephemeralContainers } } as Pod;
  };
  const patchOf = (pod: Pod, at: ShadowPod) => {
    const observed = {
      local: pruneLocalPod(pod),
      shadow: at,
      mapping: { kind: 'accepted', remoteNamespace: 'demo-cons' } as const,
      nodeReady: true,
    };
    return decide(observed, context).flatMap((action) => (action.do === 'updateShadow' ? action.patch : []));
  };
  const told = { name: 'first', image: 'd', env: [{ name: 'NS', value: 'demo' }] };
  expect(patchOf(withDebug('first'), shadow)).toContainEqual({
    op: 'add',
    path: '/spec/pod/ephemeralContainers',
    value: [told],
  });
  const has = { ...shadow, spec: { pod: { ...shadow.spec.pod, ephemeralContainers: [told] } } } as ShadowPod;
  expect(patchOf(withDebug('first'), has)).toEqual([]);
  const former = { name: 'first', image: 'd', env };
  const hasFormer = { ...shadow, spec: { pod: { ...shadow.spec.pod, ephemeralContainers: [former] } } } as ShadowPod;
  expect(patchOf(withDebug('first', 'second'), hasFormer)).toContainEqual({
    op: 'add',
    path: '/spec/pod/ephemeralContainers',
    value: [former, { ...told, name: 'second' }],
  });
});
