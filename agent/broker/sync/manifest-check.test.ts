/** What a broker may not have this cluster apply, of any kind. */
import { describe, expect, test } from 'vitest';
import { manifests, tenantNamespace as namespace, refusal } from '#agent/broker/testing/manifests.ts';
import type { KubeManifest } from '#shared/schema/protocol/agent-protocol.ts';

const secret = manifests.Secret('provider');
const tenant = manifests.Tenant('provider');

describe('refuses, naming the fault:', () => {
  test.each<{ what: string; manifest: KubeManifest; says: string }>([
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
      what: 'a finalizer',
      manifest: { ...tenant, metadata: { ...tenant.metadata, finalizers: ['x'] } },
      says: 'metadata.finalizers',
    },
    {
      what: 'a stray label',
      manifest: { ...tenant, metadata: { ...tenant.metadata, labels: { 'liqo.io/cordon': 'x' } } },
      says: 'liqo.io/cordon',
    },
    { what: 'a status', manifest: { ...tenant, status: {} }, says: 'status is not accepted' },
  ])('$what', ({ manifest, says }) => {
    expect(refusal(manifest, 'provider')).toContain(says);
  });

  test('a Tenant at the consumer', () => {
    expect(refusal(tenant, 'consumer')).toContain('to a consumer');
  });

  test.each(['constructor', 'toString', '__proto__'])(
    'a member that JavaScript gives to every object: %s',
    (member) => {
      for (const value of ['x', {}, { a: 1 }]) {
        const hostile = JSON.parse(
          JSON.stringify(tenant).replace('{', `{"${member}":${JSON.stringify(value)},`),
        ) as KubeManifest;
        expect(refusal(hostile, 'provider')).toBe(`${member} is not accepted from a broker on a Tenant`);
      }
    },
  );
});
