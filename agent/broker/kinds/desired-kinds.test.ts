/** What a broker may and may not have this cluster apply. */
import { describe, expect, test } from 'vitest';
import type { DesiredSet, KubeManifest } from '#shared/schema/protocol/agent-protocol.ts';
import { manifestRejection as reject } from '../sync/manifest-check.ts';

const set = (role: 'consumer' | 'provider'): DesiredSet => ({
  peering: 'pe_1',
  role,
  peer: 'milan',
  revision: 1,
  state: 'present',
  peerDead: false,
  objects: [],
});
const namespace = 'liqo-tenant-milan';
const tenant: KubeManifest = {
  apiVersion: 'authentication.liqo.io/v1beta1',
  kind: 'Tenant',
  metadata: { name: 'milan', namespace, labels: { 'liqo.io/remote-cluster-id': 'milan' } },
  spec: { clusterID: 'milan', csr: 'YQ==' },
};
const secret: KubeManifest = {
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name: 'liqo-nonce', namespace, labels: { 'liqo.io/nonce': 'true' } },
  data: { nonce: 'YQ==' },
};

test.each([
  { what: 'a Tenant at the provider', manifest: tenant },
  { what: 'the nonce Secret', manifest: secret },
])('accepts $what', ({ manifest }) => {
  expect(reject(set('provider'), manifest, 'rome')).toBeUndefined();
});

describe('refuses, naming the fault:', () => {
  test.each([
    {
      what: 'a kind off the list',
      manifest: { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'x', namespace } },
      says: 'may not apply v1 Pod',
    },
    {
      what: 'another version of a kind',
      manifest: { ...tenant, apiVersion: 'authentication.liqo.io/v9' },
      says: 'may not apply',
    },
    {
      what: 'a foreign namespace',
      manifest: { ...secret, metadata: { ...secret.metadata, namespace: 'kube-system' } },
      says: 'metadata.namespace is kube-system',
    },
    {
      what: 'another Secret',
      manifest: { ...secret, metadata: { ...secret.metadata, name: 'admin-token' } },
      says: 'accepted is liqo-nonce',
    },
    {
      what: 'a further key in the Secret',
      manifest: { ...secret, data: { nonce: 'YQ==', token: 'YQ==' } },
      says: 'data.token',
    },
    {
      what: 'a finalizer',
      manifest: { ...tenant, metadata: { ...tenant.metadata, finalizers: ['x'] } },
      says: 'metadata.finalizers',
    },
    {
      what: 'a stray label',
      manifest: { ...tenant, metadata: { ...tenant.metadata, labels: { 'liqo.io/cordon': 'x' } } },
      says: 'liqo.io/cordon',
    },
    {
      what: 'a stray spec field',
      manifest: { ...tenant, spec: { clusterID: 'milan', tenantCondition: 'Active' } },
      says: 'spec.tenantCondition',
    },
    {
      what: 'a third party',
      manifest: { ...tenant, spec: { clusterID: 'naples' } },
      says: 'spec.clusterID is naples, accepted is milan',
    },
    { what: 'a status', manifest: { ...tenant, status: {} }, says: 'status is not accepted' },
  ])('$what', ({ manifest, says }) => {
    expect(reject(set('provider'), manifest, 'rome')?.message).toContain(says);
  });

  test('a Tenant at the consumer', () => {
    expect(reject(set('consumer'), tenant, 'rome')?.message).toContain('to a consumer');
  });
});
