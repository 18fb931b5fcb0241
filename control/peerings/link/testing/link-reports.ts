/** A peering of rome and milan with a network, and what their agents report of its link. */
import type { ObservedObject, ObservedSet, PeeringRole } from '#shared/schema/protocol/agent-protocol.ts';
import type { NetworkTerms } from '../../../model/network-terms.ts';
import type { PeeringSpec, SideInput } from '../../../model/peering-records.ts';
import { openFacts } from '../../../testing/simulated-cluster.ts';
import { linkingFacts } from '../../../testing/simulated-link.ts';
import { initialState } from '../../core/peering-state.ts';
import { type ReconcileInput, reconcilePeering } from '../../state-machine/decide.ts';

export const now = Date.UTC(2026, 0, 1);
export const network: NetworkTerms = { enabled: true, gatewayLocation: 'provider', mtu: 1340, inBand: false };
export const spec: PeeringSpec = {
  id: 'pe_1',
  consumer: 'rome',
  provider: 'milan',
  resources: {},
  class: 'default',
  network,
  nonce: 'bm9uY2U=',
  createdAt: now,
  requestedBy: 'api-key/ak_1',
};
export const romeKey = Buffer.alloc(32, 1).toString('base64');
export const milanKey = Buffer.alloc(32, 2).toString('base64');
export const object = (kind: string, name: string, data: Record<string, unknown> = {}): ObservedObject => ({
  apiVersion: 'networking.liqo.io/v1beta1',
  kind,
  name,
  uid: kind,
  generation: 1,
  data,
});
export const configuration = (name: string, status: 'True' | 'False' = 'True', message = '') =>
  object('Configuration', name, {
    remote: { cidr: { pod: ['10.201.0.0/16'], external: ['10.71.0.0/16'] } },
    conditions: [{ type: 'NetworkCIDRsConfigured', status, reason: 'R', message, observedGeneration: 1 }],
  });
export const server = (...candidates: string[]) =>
  object('GatewayServer', 'rome', {
    candidates,
    conditions:
      candidates.length > 0 ? [] : [{ type: 'Ready', status: 'False', reason: 'R', message: 'no node has an address' }],
  });
export const client = object('GatewayClient', 'milan', {});
export const key = (peer: string, publicKey: string) => object('Secret', `gw-${peer}`, { publicKey });
export const connection = (peer: string, value: string, more: object = {}) =>
  object('Connection', `gw-${peer}`, { value, ...more });
export const working = [
  object('Identity', 'controlplane-milan', { kubeconfigReady: true }),
  object('ResourceSlice', 'milan', { conditions: [{ type: 'Resources', status: 'Accepted' }] }),
  object('Node', 'milan', { ready: true }),
];
export const here = [configuration('milan'), client, key('milan', romeKey)];
export const there = [configuration('rome'), server('192.0.2.1:30000', '192.0.2.2:30000'), key('rome', milanKey)];

export const report = (
  role: PeeringRole,
  objects: readonly ObservedObject[],
  change: Partial<ObservedSet> = {},
): SideInput => ({
  facts: linkingFacts(openFacts),
  lastSeenAt: now,
  offlineFrom: now + 90_000,
  left: false,
  observed: { peering: 'pe_1', role, appliedRevision: 1, objects: [...objects], refusals: [], ...change },
});
export const run = (
  consumer: readonly ObservedObject[],
  provider: readonly ObservedObject[],
  change: Partial<ReconcileInput> = {},
) =>
  reconcilePeering({
    spec,
    state: initialState,
    consumer: report('consumer', consumer),
    provider: report('provider', provider),
    opposite: false,
    now,
    ...change,
  });
