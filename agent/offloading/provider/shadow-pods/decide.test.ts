/** Which pod a ShadowPod gets, and what its end means. */
import { describe, expect, test } from 'vitest';
import type { Pod } from '#shared/domain/kube-object.ts';
import type { ShadowPod } from '#shared/schema/liqo/shadow-pod.ts';
import { decide } from './decide.ts';
import { podOf } from './pod-object.ts';

const shadow = (more: { metadata?: object; phase?: string; pod?: object } = {}): ShadowPod =>
  ({
    apiVersion: 'offloading.liqo.io/v1beta1',
    kind: 'ShadowPod',
    metadata: {
      namespace: 'ns',
      name: 'web',
      uid: 's1',
      labels: { 'offloading.liqo.io/origin': 'cons' },
      ...more.metadata,
    },
    spec: { pod: { containers: [{ name: 'a', image: 'a:1' }], ...more.pod } },
    ...(more.phase && { status: { phase: more.phase } }),
  }) as ShadowPod;
const going = { deletionTimestamp: '2026-01-01T00:00:00Z' };
const podFor = (of: ShadowPod, phase = 'Running', metadata: object = {}): Pod => {
  const made = podOf(of);
  return { ...made, metadata: { ...made.metadata, uid: 'p1', ...metadata }, status: { phase } };
};
const mine = { namespaceOrigin: 'cons' };

describe('a ShadowPod', () => {
  test('without a pod gets one, unless it has finished or is going', () => {
    expect(decide({ ...mine, shadow: shadow() }).do).toBe('create');
    expect(decide({ ...mine, shadow: shadow({ phase: 'Running' }) }).do).toBe('create');
    for (const phase of ['Succeeded', 'Failed'])
      expect(decide({ ...mine, shadow: shadow({ phase }) }).do).toBe('nothing');
    expect(decide({ ...mine, shadow: shadow({ metadata: going }) }).do).toBe('nothing');
  });

  test('in a namespace of another consumer is refused', () => {
    expect(decide({ shadow: shadow(), namespaceOrigin: 'other' })).toMatchObject({ do: 'refuse' });
    expect(decide({ shadow: shadow() })).toMatchObject({ do: 'refuse', message: expect.stringMatching(/no consumer/) });
  });

  test('in step with its pod needs no write', () => {
    const s = shadow({ phase: 'Running' });
    expect(decide({ shadow: s, pod: podFor(s) })).toEqual({ do: 'follow', pod: expect.anything(), spec: [] });
  });

  test.each([
    ['Always', 'Failed', undefined],
    ['Always', 'Succeeded', undefined],
    ['Never', 'Failed', undefined],
    ['OnFailure', 'Succeeded', 'Succeeded'],
    ['Never', 'Succeeded', 'Succeeded'],
  ])('whose pod with restartPolicy %s is deleted and ends %s reports %s', (restartPolicy, phase, reported) => {
    const s = shadow({ phase: 'Running', pod: { restartPolicy } });
    const decision = decide({ shadow: s, pod: podFor(s, phase, going) });
    expect(decision.do === 'follow' && decision.phase).toBe(reported);
  });

  test('reports the end of a pod that was not deleted', () => {
    const s = shadow({ phase: 'Running' });
    expect(decide({ shadow: s, pod: podFor(s, 'Failed') })).toMatchObject({ phase: 'Failed' });
  });

  test('replaces the pod of its predecessor, waits for one that is going, and leaves others alone', () => {
    const old = podFor(shadow({ metadata: { uid: 's0' } }));
    expect(decide({ shadow: shadow(), pod: old })).toMatchObject({ do: 'delete', because: 'replaced' });
    expect(decide({ shadow: shadow(), pod: { ...old, metadata: { ...old.metadata, ...going } } }).do).toBe('nothing');
    const foreign = podFor(shadow(), 'Running', {
      ownerReferences: [{ kind: 'ReplicaSet', controller: true, uid: 'r' }],
    });
    expect(decide({ shadow: shadow(), pod: foreign }).do).toBe('refuse');
  });
});

describe('a pod without its ShadowPod', () => {
  test('goes, also when the consumer asked for it to be left behind', () => {
    expect(decide({ pod: podFor(shadow()) })).toMatchObject({ do: 'delete', because: 'orphaned' });
    expect(decide({ pod: podFor(shadow(), 'Running', { ownerReferences: [] }) })).toMatchObject({ do: 'delete' });
    expect(decide({ shadow: shadow({ metadata: going }), pod: podFor(shadow()) })).toMatchObject({ do: 'delete' });
  });

  test('stays when it merely carries the label', () => {
    const labelled = podFor(shadow(), 'Running', { ownerReferences: [], annotations: {} });
    expect(decide({ pod: labelled }).do).toBe('nothing');
  });
});

describe('changes of a ShadowPod', () => {
  test('reach the pod by container name, and what others added stays', () => {
    const before = shadow({ metadata: { annotations: { note: '1' } }, phase: 'Running' });
    const made = podFor(before);
    const injected = { name: 'sidecar', image: 'mesh' };
    const pod: Pod = {
      ...made,
      metadata: { ...made.metadata, labels: { ...made.metadata.labels, mesh: 'on' } },
      spec: {
        ...made.spec,
        containers: [injected, ...(made.spec?.containers ?? [])],
        tolerations: [{ key: 'default', operator: 'Exists' }],
      },
    };
    const tolerations = [{ key: 'gpu', operator: 'Exists' }];
    const after = shadow({ phase: 'Running', pod: { containers: [{ name: 'a', image: 'a:2' }], tolerations } });
    const decision = decide({ shadow: after, pod });
    expect(decision).toMatchObject({
      do: 'follow',
      metadata: { metadata: { uid: 'p1', annotations: { note: null } } },
      spec: [
        { op: 'test', path: '/metadata/uid', value: 'p1' },
        { op: 'replace', path: '/spec/containers/1/image', value: 'a:2' },
        { op: 'test', path: '/spec/tolerations', value: [{ key: 'default', operator: 'Exists' }] },
        { op: 'add', path: '/spec/tolerations/-', value: tolerations[0] },
      ],
    });
    expect(decision.do === 'follow' && decision.metadata?.metadata).not.toHaveProperty('labels');
  });
});

describe('a resized ShadowPod', () => {
  const sized = (cpu: string, more: object = {}) => ({
    containers: [{ name: 'a', image: 'a:1', resources: { requests: { cpu } } }],
    ...more,
  });
  const withInjected = (pod: Pod): Pod => ({
    ...pod,
    spec: { ...pod.spec, containers: [{ name: 'proxy', image: 'p' }, ...(pod.spec?.containers ?? [])] },
  });

  test('resizes its pod by container name, keeping what was filled in there; equal amounts are equal', () => {
    const pod = withInjected(podFor(shadow({ phase: 'Running', pod: sized('500m') })));
    const resources = pod.spec?.containers[1]?.resources;
    if (resources?.requests) resources.requests.memory = '64Mi';
    const s = shadow({ phase: 'Running', pod: sized('1') });
    expect(decide({ shadow: s, pod })).toMatchObject({
      spec: [],
      resize: [
        { op: 'test', path: '/metadata/uid', value: 'p1' },
        { op: 'add', path: '/spec/containers/1/resources', value: { requests: { cpu: '1', memory: '64Mi' } } },
      ],
    });
    const same = podFor(shadow({ phase: 'Running', pod: sized('1000m') }));
    expect(decide({ shadow: s, pod: same })).toEqual({ do: 'follow', pod: same, spec: [] });
  });

  test('gets its ephemeral containers after its pod is there, once each', () => {
    const s = shadow({ phase: 'Running', pod: sized('1', { ephemeralContainers: [{ name: 'debug', image: 'd' }] }) });
    const pod = podFor(s);
    expect(pod.spec).not.toHaveProperty('ephemeralContainers');
    expect(decide({ shadow: s, pod })).toMatchObject({
      ephemeralcontainers: [{}, { path: '/spec/ephemeralContainers', value: [{ name: 'debug', image: 'd' }] }],
    });
    const debugged = { ...pod, spec: { ...pod.spec, ephemeralContainers: [{ name: 'debug', image: 'd', tty: true }] } };
    expect(decide({ shadow: s, pod: debugged as Pod })).not.toHaveProperty('ephemeralcontainers');
  });
});

test("the consumer's API server has the address by which this cluster calls it; other names are the pod's own", () => {
  const hostAliases = [
    { ip: '10.70.0.1', hostnames: ['kubernetes.default', 'kubernetes.default.svc'] },
    { ip: '10.70.0.9', hostnames: ['db'] },
  ];
  const of = { ...shadow(), spec: { pod: { ...shadow().spec.pod, hostAliases } } } as ShadowPod;
  const ips = podOf(of, (address) => address.replace('10.70.', '10.170.')).spec?.hostAliases?.map(({ ip }) => ip);
  expect(ips).toEqual(['10.170.0.1', '10.70.0.9']);
});
