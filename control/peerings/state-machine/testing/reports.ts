/** A peering of rome and milan, and what their agents report of its objects. */
import type { ObservedObject, ObservedSet, PeeringRole } from '#shared/schema/protocol/agent-protocol.ts';
import type { PeeringSpec } from '../../../model/peering-records.ts';

export const now = Date.UTC(2026, 0, 1);
export const spec: PeeringSpec = {
  id: 'pe_1',
  consumer: 'rome',
  provider: 'milan',
  resources: { cpu: '2' },
  class: 'default',
  nonce: 'bm9uY2U=',
  createdAt: now,
  requestedBy: 'api-key/ak_1',
};
export const object = (kind: string, name: string, data: Record<string, unknown> = {}): ObservedObject => ({
  apiVersion: 'v1',
  kind,
  name,
  uid: kind,
  data,
});
export const secret = object('Secret', 'liqo-signed-nonce', { signedNonce: 'c2ln', csr: 'Y3Ny', publicKey: 'a2V5' });
export const tenant = object('Tenant', 'rome', {
  authParams: {
    ca: 'Y2E=',
    signedCRT: 'Y3J0',
    apiServer: 'https://milan:6443',
    awsConfig: { awsSecretAccessKey: 'no' },
  },
  tenantNamespace: 'liqo-tenant-rome',
});
export const identity = object('Identity', 'controlplane-milan', { kubeconfigReady: true });
export const slice = (status: 'Accepted' | 'Denied', message = '', reason = 'R') =>
  object('ResourceSlice', 'milan', {
    conditions: [
      { type: 'Authentication', status: 'Accepted' },
      { type: 'Resources', status, reason, message },
    ],
    resources: { cpu: '2' },
  });
export const node = (ready: boolean) => object('Node', 'milan', { ready, reason: 'KubeletDown', message: 'no route' });

export const reported = (
  role: PeeringRole,
  objects: readonly ObservedObject[],
  change: Partial<ObservedSet> = {},
): ObservedSet => ({
  peering: 'pe_1',
  role,
  appliedRevision: 1,
  objects: [...objects],
  refusals: [],
  ...change,
});
export const refusal = (code: string) => [{ object: 'ResourceSlice/liqo-tenant-milan/milan', code, message: 'no' }];
