import { describe, expect, test } from 'vitest';
import type { DesiredRecord, SideInput } from '../../model/peering-records.ts';
import { openFacts } from '../../testing/simulated-cluster.ts';
import { initialState } from '../core/peering-state.ts';
import { advanceRemoval } from './removal.ts';

const now = Date.UTC(2026, 0, 1);
const spec = {
  id: 'pe_1',
  consumer: 'rome',
  provider: 'milan',
  resources: { cpu: '2' },
  class: 'default',
  nonce: 'bm9uY2U=',
  createdAt: now,
  requestedBy: 'api-key/ak_1',
  unpeerRequestedAt: now,
};
const desired: DesiredRecord = {
  peering: 'pe_1',
  role: 'provider',
  peer: 'rome',
  revision: 7,
  state: 'present',
  peerDead: false,
  announcement: 'of rome',
  objects: [{ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'liqo-tenant-rome' } }],
};
const tenant = { apiVersion: 'authentication.liqo.io/v1beta1', kind: 'Tenant', name: 'rome', uid: 't', data: {} };
const slice = {
  apiVersion: 'authentication.liqo.io/v1beta1',
  kind: 'ResourceSlice',
  name: 'milan',
  uid: 's',
  data: {},
};

function side(role: 'consumer' | 'provider', change: Partial<SideInput> = {}): SideInput {
  const objects = role === 'consumer' ? [slice] : [tenant];
  return {
    facts: openFacts,
    lastSeenAt: now,
    offlineFrom: now + 90_000,
    left: false,
    desired: { ...desired, role, peer: role === 'consumer' ? 'milan' : 'rome' },
    observed: { peering: 'pe_1', role, appliedRevision: 7, objects, refusals: [] },
    ...change,
  };
}
const advanced = (provider: Partial<SideInput> = {}) =>
  advanceRemoval({
    spec,
    state: initialState,
    consumer: side('consumer'),
    provider: side('provider', provider),
    opposite: false,
    now,
  });

describe('while the consumer gives back what it has', () => {
  test('the provider is told what it was told before, with what the consumer signed for it: it refuses the rest otherwise', () => {
    const { state, peerDead, announcement, objects } = desired;
    expect(advanced().desiredProvider).toEqual({ state, peerDead, announcement, objects });
    expect(advanced().desiredConsumer).toEqual({ state: 'absent', peerDead: false, objects: [] });
  });

  test('the provider is not said to refuse a removal that it has not been asked for', () => {
    const refusals = [{ object: 'Tenant/rome', code: 'peer_unproven', message: 'waits for what rome announces' }];
    const observed = { peering: 'pe_1', role: 'provider' as const, appliedRevision: 7, objects: [tenant], refusals };
    const { conditions } = advanced({ observed });
    expect(conditions.find(({ type }) => type === 'ProviderClean')).toMatchObject({
      status: 'False',
      reason: 'WaitingForConsumer',
      message: 'milan keeps its side until rome has given everything back',
    });
  });
});
