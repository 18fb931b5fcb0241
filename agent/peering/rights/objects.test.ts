import { expect, test } from 'vitest';
import type { Namespace } from '#shared/domain/kube-object.ts';
import { gatewayBinding, podSecurityLabels, rolesIn } from './objects.ts';

const namespace = (metadata: object): Namespace => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name: 'one', ...metadata },
});
const tenant = { labels: { 'liqo.io/tenant-namespace': 'true', 'liqo.io/remote-cluster-id': 'milan' } };
const guest = { annotations: { 'liqo.io/managed-by-namespace-map': 'liqo-tenant-rome/milan' } };

test.each([
  ['of others', {}, false, []],
  ['of a peer', tenant, false, ['isthmus-agent-tenant']],
  ['labelled as that of some peer', { labels: { 'liqo.io/tenant-namespace': 'true' } }, false, []],
  ['made for a consumer', guest, false, ['isthmus-agent-guest']],
  ['that is offloaded', {}, true, ['isthmus-agent-offloaded']],
  ['made for a consumer and offloaded further', guest, true, ['isthmus-agent-guest', 'isthmus-agent-offloaded']],
  ['that is going', { ...tenant, deletionTimestamp: '2026-01-01T00:00:00Z' }, true, []],
])('rights of the agent in a namespace %s', (_name, metadata, isOffloaded, roles) => {
  expect(rolesIn(namespace(metadata), isOffloaded)).toEqual(roles);
});

const enforce = 'pod-security.kubernetes.io/enforce';
test.each([
  ['of a peer', tenant, { [enforce]: 'privileged' }],
  ['of a peer that says what it wants', { labels: { ...tenant.labels, [enforce]: 'baseline' } }, undefined],
  ['of others', {}, undefined],
  ['made for a consumer', guest, undefined],
])('a namespace %s is labelled for the pods of gateways: %o', (_name, metadata, labels) => {
  expect(podSecurityLabels(namespace(metadata))).toEqual(labels);
});

test('pods of gateways get the role that the distribution asks for, in tenant namespaces only', () => {
  expect(gatewayBinding(namespace(tenant), undefined)).toBeUndefined();
  expect(gatewayBinding(namespace(guest), 'isthmus-gateway')).toBeUndefined();
  expect(gatewayBinding(namespace(tenant), 'isthmus-gateway')).toMatchObject({
    metadata: { name: 'isthmus-gateway', namespace: 'one' },
    roleRef: { kind: 'ClusterRole', name: 'isthmus-gateway' },
    subjects: [{ kind: 'Group', name: 'system:serviceaccounts:one' }],
  });
});
