import { expect, test } from 'vitest';
import type { Service } from '#shared/domain/core-kinds.ts';
import type { ConfigMap, KubeObject, Secret } from '#shared/domain/kube-object.ts';
import { configMap } from '../kinds/config-map.ts';
import { type OutgoingKind, outgoing } from '../kinds/kind.ts';
import { secret } from '../kinds/secret.ts';
import { service } from '../kinds/service.ts';
import { buildCopy, fingerprintOf, foreignOwner, pruneMetadata, stamped } from '../model/metadata.ts';
import { type Action, type DesiredCopy, decide } from './decide.ts';

const pair = { consumer: 'cons', provider: 'prov' };
const shape = { labelsNotReflected: ['secret-label'], annotationsNotReflected: ['secret-note'] };
const at = { name: 'web', namespace: 'demo-cons' };

const local = (metadata: object = {}, more: object = {}): ConfigMap =>
  ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'web', namespace: 'demo', uid: 'l1', ...metadata },
    data: { a: '1' },
    ...more,
  }) as ConfigMap;
const copyOf = (object: KubeObject, kind: OutgoingKind) => {
  const copy = kind.copy(kind.prune(pruneMetadata(object)), { ...pair, shape, around: {} as never });
  if (!('content' in copy)) throw new Error(JSON.stringify(copy));
  return buildCopy({ apiVersion: object.apiVersion, kind: object.kind }, at, object, copy, shape, pair);
};
const desired = (object: KubeObject, kind = outgoing(configMap)): DesiredCopy => ({
  kind: 'copy',
  copy: copyOf(object, kind),
});
/** As the provider's API server would show it after we wrote it. */
const written = (object: KubeObject, change: object = {}, kind = outgoing(configMap)): KubeObject => {
  const copy = copyOf(object, kind);
  const made = stamped(copy, fingerprintOf(copy));
  return { ...made, ...change, metadata: { ...made.metadata, uid: 'r1' } };
};
const foreign = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { ...at, uid: 'f1' } } as KubeObject;
const going = (object: KubeObject): KubeObject => ({
  ...object,
  metadata: { ...object.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' },
});

interface Row {
  readonly when: string;
  readonly desired: DesiredCopy;
  readonly remote?: KubeObject;
  readonly does: Action['do'];
}
test.each<Row>([
  { when: 'nothing is there', desired: { kind: 'none' }, does: 'nothing' },
  { when: 'the object is new', desired: desired(local()), does: 'create' },
  { when: 'the copy is as it should be', desired: desired(local()), remote: written(local()), does: 'nothing' },
  {
    when: 'the data changed',
    desired: desired(local({}, { data: { a: '2' } })),
    remote: written(local()),
    does: 'update',
  },
  { when: 'a key was dropped', desired: desired(local({}, { data: {} })), remote: written(local()), does: 'update' },
  {
    when: 'a label was dropped',
    desired: desired(local()),
    remote: written(local({ labels: { a: 'b' } })),
    does: 'update',
  },
  {
    when: 'a label that stays here changed',
    desired: desired(local({ labels: { 'secret-label': 'x' } })),
    remote: written(local()),
    does: 'nothing',
  },
  { when: 'it was changed there', desired: desired(local()), remote: written(local(), { data: {} }), does: 'update' },
  {
    when: 'an immutable copy must change',
    desired: desired(local({}, { data: { a: '2' } })),
    remote: written(local({}, { immutable: true })),
    does: 'replace',
  },
  {
    when: 'it becomes immutable',
    desired: desired(local({}, { immutable: true })),
    remote: written(local()),
    does: 'update',
  },
  { when: 'the copy is going', desired: desired(local()), remote: going(written(local())), does: 'nothing' },
  { when: 'the object is gone', desired: { kind: 'none' }, remote: written(local()), does: 'delete' },
  { when: 'the policy says no', desired: { kind: 'disabled' }, remote: written(local()), does: 'delete' },
  {
    when: 'the object is gone and the copy is going',
    desired: { kind: 'none' },
    remote: going(written(local())),
    does: 'nothing',
  },
  { when: 'it cannot be made', desired: { kind: 'refused', why: 'w' }, remote: written(local()), does: 'warn' },
  { when: 'B040: the name is taken', desired: desired(local()), remote: foreign, does: 'warn' },
  {
    when: 'B040: the object is gone and the name is a stranger',
    desired: { kind: 'none' },
    remote: foreign,
    does: 'nothing',
  },
  {
    when: 'B040: it is disabled and the name is a stranger',
    desired: { kind: 'disabled' },
    remote: foreign,
    does: 'nothing',
  },
])('when $when: $does', ({ desired: wanted, remote, does }) => {
  expect(decide({ desired: wanted, remote }, outgoing(configMap), pair).do).toBe(does);
});

test.each([
  { when: 'the object changed', object: local({}, { data: { a: '2' } }), isNews: true },
  { when: 'the copy was changed at the provider', object: local(), isNews: false },
])('when $when, whether the desired copy is new: $isNews', ({ object, isNews }) => {
  const remote = written(local(), { data: { a: 'theirs' } });
  expect(decide({ desired: desired(object), remote }, outgoing(configMap), pair)).toMatchObject({
    do: 'update',
    uid: 'r1',
    isNews,
  });
});

test.each([
  { what: 'type', change: { type: 'kubernetes.io/tls' } },
  { what: 'data of an immutable one', change: { data: { a: 'Yg==' } } },
  { what: 'immutability', change: { immutable: undefined } },
])('a Secret whose $what changes is replaced', ({ change }) => {
  const before = {
    ...local(),
    kind: 'Secret',
    type: 'Opaque',
    immutable: true,
    data: { a: 'YQ==' },
  } as unknown as Secret;
  const kind = outgoing(secret);
  const remote = kind.prune(written(before, { type: 'Opaque', immutable: true }, kind));
  expect(decide({ desired: desired({ ...before, ...change } as Secret, kind), remote }, kind, pair).do).toBe('replace');
});

const spec = (more: object): Service =>
  ({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'web', namespace: 'demo' },
    spec: { type: 'ClusterIP', clusterIP: '10.0.0.1', ...more },
  }) as Service;
test.each([
  { from: { clusterIP: 'None' }, to: {}, is: true },
  { from: {}, to: { clusterIP: 'None' }, is: true },
  { from: {}, to: { type: 'NodePort' }, is: false },
  { from: { type: 'ExternalName' }, to: {}, is: false },
  {
    from: { type: 'LoadBalancer', loadBalancerClass: 'a' },
    to: { type: 'LoadBalancer', loadBalancerClass: 'b' },
    is: true,
  },
  { from: { type: 'LoadBalancer' }, to: { type: 'ClusterIP' }, is: false },
])('a Service made of $from becomes $to by replacement: $is', ({ from, to, is }) => {
  expect(service.mustReplace(spec(from), { spec: { type: 'ClusterIP', ...to } })).toBe(is);
});

test('caches hold neither the contents of Secrets nor what kubectl keeps of them, and nothing at all of strangers', () => {
  const annotations = { 'kubectl.kubernetes.io/last-applied-configuration': 'hunter2' };
  const object = { ...local({ annotations }), kind: 'Secret', data: { password: 'hunter2' } } as unknown as Secret;
  const prune = secret.prune(pruneMetadata(object));
  expect(JSON.stringify(prune)).not.toContain('hunter2');
  expect(secret.prune(prune)).toEqual(prune);
  expect(JSON.stringify(foreignOwner(object))).not.toContain('hunter2');
});

test('B084: keys that are not reflected are absent, all others and ours are present', () => {
  const labels = {
    app: 'web',
    'secret-label': 'x',
    'offloading.liqo.io/origin': 'elsewhere',
    'offloading.liqo.io/nodename': 'n',
  };
  const annotations = { note: 'n', 'secret-note': 'x', 'kubectl.kubernetes.io/last-applied-configuration': '{}' };
  const { metadata } = copyOf(
    local({ labels, annotations, finalizers: ['f'], ownerReferences: [] }),
    outgoing(configMap),
  );
  expect(metadata).toEqual({
    ...at,
    labels: { app: 'web', 'offloading.liqo.io/origin': 'cons', 'offloading.liqo.io/destination': 'prov' },
    annotations: { note: 'n' },
  });
});
