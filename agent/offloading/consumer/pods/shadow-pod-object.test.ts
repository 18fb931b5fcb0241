import { expect, test } from 'vitest';
import type { Pod } from '#shared/domain/kube-object.ts';
import type { OffloadingPatch } from '#shared/schema/liqo/virtual-node.ts';
import { mutableSpec } from './mutable-spec.ts';
import { shadowPod } from './shadow-pod-object.ts';

function pod(spec: Record<string, unknown> = {}, annotations: Record<string, string> = {}): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: 'web-1',
      namespace: 'demo',
      uid: 'u-1',
      labels: { app: 'web', secret: 'x', 'liqo.io/shadowPod': 'true', 'pod-template-hash': 'abc' },
      annotations: { note: 'n', 'isthmus.dev/remote-pod': '{}', ...annotations },
      ownerReferences: [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web', uid: 'r' }],
      finalizers: ['x/y'],
    },
    spec: { containers: [{ name: 'app', image: 'i:1' }], ...spec },
  } as Pod;
}

const forge = (local: Pod, patch?: OffloadingPatch) =>
  shadowPod({ pod: local, remoteNamespace: 'demo-cons', consumer: 'cons', provider: 'prov', nodeName: 'vn1', patch });

test('metadata: mapped namespace, our labels, the stamp of the local pod, and nothing that is ours alone', () => {
  const { metadata } = forge(pod(), { labelsNotReflected: ['secret'], annotationsNotReflected: ['note'] });
  expect(metadata).toEqual({
    name: 'web-1',
    namespace: 'demo-cons',
    labels: {
      app: 'web',
      'pod-template-hash': 'abc',
      'offloading.liqo.io/nodename': 'vn1',
      'offloading.liqo.io/origin': 'cons',
      'offloading.liqo.io/destination': 'prov',
    },
    annotations: { 'isthmus.dev/local-namespace': 'demo', 'isthmus.dev/local-pod-uid': 'u-1' },
  });
});

test('what the consumer decided for its own nodes stays here', () => {
  const own = {
    nodeName: 'vn1',
    nodeSelector: { a: 'b' },
    affinity: { nodeAffinity: {} },
    schedulerName: 's',
    priority: 5,
    priorityClassName: 'high',
    preemptionPolicy: 'Never',
    overhead: { cpu: '1' },
    schedulingGates: [{ name: 'g' }],
    resourceClaims: [{ name: 'r' }],
    // The provider's kubelet would wait for conditions that controllers of this cluster set here.
    readinessGates: [{ conditionType: 'c' }],
    ephemeralContainers: [{ name: 'debug' }],
    serviceAccount: 'sa',
    serviceAccountName: 'sa',
    runtimeClassName: 'liqo',
    hostNetwork: true,
    hostPID: true,
    hostIPC: true,
  };
  expect(forge(pod(own)).spec.pod).toEqual({
    containers: [{ name: 'app', image: 'i:1' }],
    automountServiceAccountToken: false,
    hostIPC: false,
    hostNetwork: false,
    hostPID: false,
  });
});

test('what makes the pod itself goes along', () => {
  const own = {
    initContainers: [{ name: 'init', image: 'i' }],
    volumes: [{ name: 'data', emptyDir: {} }],
    activeDeadlineSeconds: 9,
    dnsPolicy: 'ClusterFirst',
    dnsConfig: { searches: ['a'] },
    enableServiceLinks: true,
    hostAliases: [{ ip: '1.2.3.4', hostnames: ['h'] }],
    hostname: 'h',
    imagePullSecrets: [{ name: 'p' }],
    hostUsers: false,
    os: { name: 'linux' },
    restartPolicy: 'Always',
    securityContext: { runAsUser: 1 },
    setHostnameAsFQDN: false,
    shareProcessNamespace: true,
    subdomain: 's',
    terminationGracePeriodSeconds: 30,
    topologySpreadConstraints: [{ maxSkew: 1, topologyKey: 'z', whenUnsatisfiable: 'DoNotSchedule' }],
  };
  expect(forge(pod(own)).spec.pod).toMatchObject(own);
});

test.each([
  { asked: 'a', own: 'b', patch: 'c', want: 'a' },
  { asked: undefined, own: 'b', patch: 'c', want: 'b' },
  { asked: undefined, own: 'liqo', patch: 'c', want: 'c' },
  { asked: undefined, own: undefined, patch: 'liqo', want: undefined },
])('runtime class: annotation $asked, own $own, patch $patch give $want', ({ asked, own, patch, want }) => {
  const annotations: Record<string, string> = asked === undefined ? {} : { 'liqo.io/remote-runtime-class-name': asked };
  const made = forge(pod(own === undefined ? {} : { runtimeClassName: own }, annotations), { runtimeClassName: patch });
  expect(made.spec.pod.runtimeClassName).toBe(want);
});

test("the VirtualNode's patch and the pod's preset both shape where the pod may run", () => {
  const expression = { key: 'pool', operator: 'In' as const, values: ['x'] };
  const nodeAffinity = {
    requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchExpressions: [expression] }] },
  };
  const injected = { key: 'virtual-node.liqo.io/not-allowed', operator: 'Exists', effect: 'NoExecute' };
  const local = pod(
    { tolerations: [injected, { key: 'other', operator: 'Exists' }] },
    { 'liqo.io/anti-affinity-preset': 'hard' },
  );
  const { spec } = forge(local, {
    nodeSelector: { pool: 'x' },
    tolerations: [{ key: 'pool', operator: 'Exists' }],
    affinity: { nodeAffinity },
  });
  expect(spec.pod.nodeSelector).toEqual({ pool: 'x' });
  expect(spec.pod.tolerations?.map(({ key }) => key)).toEqual(['other', 'pool']);
  expect(spec.pod.affinity?.nodeAffinity).toEqual(nodeAffinity);
  const [term] = spec.pod.affinity?.podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? [];
  expect(term?.topologyKey).toBe('kubernetes.io/hostname');
  expect(term?.labelSelector?.matchLabels).toMatchObject({ app: 'web', 'offloading.liqo.io/nodename': 'vn1' });
  expect(term?.labelSelector?.matchLabels).not.toHaveProperty('pod-template-hash');
});

test('the soft preset takes only the labels that are asked for, and an unknown one is ignored', () => {
  const annotations = { 'liqo.io/anti-affinity-preset': 'soft', 'liqo.io/anti-affinity-labels': 'app, none' };
  const [soft] =
    forge(pod({}, annotations)).spec.pod.affinity?.podAntiAffinity?.preferredDuringSchedulingIgnoredDuringExecution ??
    [];
  expect(soft).toMatchObject({ weight: 1, podAffinityTerm: { labelSelector: { matchLabels: { app: 'web' } } } });
  expect(forge(pod({}, { 'liqo.io/anti-affinity-preset': 'strange' })).spec.pod.affinity).toBeUndefined();
});

test('the mutable part of a ShadowPod equals that of the pod it was made from, so nothing is written twice', () => {
  const local = pod({
    activeDeadlineSeconds: 5,
    tolerations: [{ key: 'virtual-node.liqo.io/not-allowed' }, { key: 'a' }],
  });
  const patch = { tolerations: [{ key: 'b' }] };
  expect(mutableSpec(forge(local, patch).spec.pod)).toEqual(mutableSpec(local.spec!, patch));
});
