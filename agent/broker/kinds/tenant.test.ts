import { describe, expect, test } from 'vitest';
import { manifests, refusal } from '#agent/broker/testing/manifests.ts';
import type { KubeManifest } from '#shared/schema/protocol/agent-protocol.ts';
import { tenant as kind } from './tenant.ts';

const tenant = manifests.Tenant('provider');

describe('refuses, naming the fault:', () => {
  test.each<{ what: string; manifest: KubeManifest; says: string }>([
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
    {
      what: 'a party that is no text',
      manifest: { ...tenant, spec: { clusterID: { toString: 1 } } },
      says: 'spec.clusterID is {"toString":1}, accepted is milan',
    },
  ])('$what', ({ manifest, says }) => {
    expect(refusal(manifest, 'provider')).toContain(says);
  });
});

test('the broker is told of certificates and sealed tokens, and of no key of AWS', () => {
  const authParams = { ca: 'Y2E=', sealedToken: 'e30.a.b.c.d', tokenExpiration: '2026-01-02T00:00:00Z' };
  const awsConfig = { awsSecretAccessKey: 's3cret' };
  const told = kind.observed({ status: { authParams: { ...authParams, awsConfig } } } as never);
  expect(told).toEqual({ authParams });
});
