import { expect, test } from 'vitest';
import { issueServingCertificate } from '#agent/pki/webhook-certificate.ts';
import type { ForeignCluster } from '#shared/schema/liqo/foreign-cluster.ts';
import { amounts, endsOf, phaseOf } from './peers.ts';

const peer = (statuses: readonly string[], enabled = true): ForeignCluster =>
  ({
    metadata: { name: 'milan' },
    spec: { clusterID: 'milan' },
    status: {
      modules: {
        networking: { enabled, conditions: statuses.map((status) => ({ type: 'NetworkConnectionStatus', status })) },
        authentication: { enabled: false, conditions: [{ type: 'AuthTenantStatus', status: 'Error' }] },
        offloading: { enabled: false },
      },
    },
  }) as unknown as ForeignCluster;

test.each([
  { statuses: ['Established', 'Ready'], phase: 'Ready' },
  { statuses: ['Established', 'Pending'], phase: 'Pending' },
  { statuses: ['Established', 'Error', 'Pending'], phase: 'Error' },
  { statuses: ['SomeNotReady'], phase: 'Pending' },
  { statuses: [], phase: 'Pending' },
])('a peer with $statuses is $phase', ({ statuses, phase }) => {
  expect(phaseOf(peer(statuses))).toBe(phase);
});

test('modules that are not enabled do not count', () => {
  expect(phaseOf(peer(['Ready']))).toBe('Ready');
  expect(phaseOf(peer(['Error'], false))).toBe('Pending');
});

test('amounts are told in cores, bytes and pieces', () => {
  const labels = { cluster_id: 'milan', role: 'Provider', slice: 's' };
  expect([...amounts({ cpu: '1500m', memory: '2Gi', pods: '10' }, 'milan', 'Provider', 's')]).toEqual([
    [{ ...labels, resource: 'cpu' }, 1.5],
    [{ ...labels, resource: 'memory' }, 2_147_483_648],
    [{ ...labels, resource: 'pods' }, 10],
  ]);
});

test('credentials end with their certificate or their token', () => {
  const { certificate } = issueServingCertificate(['localhost'], Date.UTC(2026, 0, 1));
  const signedCRT = Buffer.from(certificate).toString('base64');
  expect(endsOf({ signedCRT })).toEqual({ certificate: Date.UTC(2027, 0, 1) });
  expect(endsOf({ tokenExpiration: '2030-01-01T00:00:00Z' })).toEqual({ token: Date.UTC(2030, 0, 1) });
  expect(endsOf({ signedCRT: 'bm9uZQ==' })).toEqual({});
  expect(endsOf({})).toEqual({});
});
