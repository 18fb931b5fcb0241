/** Which peer an object may speak for, depending on its namespace. */
import { expect, test } from 'vitest';
import type { KubeObject, Namespace } from '#shared/domain/kube-object.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import { placementOf } from './tenant-namespaces.ts';

const namespace = (name: string, peer: string): Namespace => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name, labels: { [label.tenantNamespace]: 'true', [label.remoteClusterId]: peer } },
});
const object: KubeObject = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 's', namespace: 'ns-rome' } };
const all = [
  namespace('ns-rome', 'rome'),
  namespace('ns-turin', 'turin'),
  namespace('a', 'twice'),
  namespace('b', 'twice'),
];

test('the peer of its namespace', () => expect(placementOf(object, 'rome', all)).toEqual({ peer: 'rome' }));

test.each<[string, string | undefined, object]>([
  ['no peer', undefined, { kind: 'stalled', reason: 'MissingClusterID' }],
  [
    'a peer of another namespace',
    'turin',
    { kind: 'stalled', reason: 'WrongNamespace', message: expect.stringContaining('ns-turin') },
  ],
  [
    'a peer with two namespaces',
    'twice',
    { kind: 'stalled', reason: 'AmbiguousTenantNamespace', message: expect.stringContaining('a and b') },
  ],
  ['a peer without namespace', 'naples', { kind: 'waiting', on: expect.stringContaining('liqo-tenant-naples') }],
])('not %s', (_name, claimed, outcome) =>
  expect(placementOf(object, claimed, all)).toEqual({ outcome: expect.objectContaining(outcome) }),
);
