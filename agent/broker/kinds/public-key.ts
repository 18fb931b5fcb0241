/** PublicKey: the WireGuard key of the peer's gateway. */
import { networkLabel } from '#shared/domain/network-keys.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import type { KubeManifest } from '#shared/schema/protocol/agent-protocol.ts';
import { isOfPeer } from './derived.ts';
import { type BrokerKind, bothRoles, peeringLabels, watched } from './kind.ts';
import { specOf } from './manifest.ts';

export const publicKey: BrokerKind<'PublicKey'> = {
  type: networkKinds.publicKeys,
  accepted: {
    roles: bothRoles,
    names: (set) => [set.peer],
    labels: [...peeringLabels, networkLabel.gatewayResource],
    annotations: [],
    members: { spec: ['publicKey'] },
    check: checkKey,
  },
  caches: watched(networkKinds.publicKeys),
  isDerived: isOfPeer,
  observed: () => ({}),
  takedown: { consumer: 'link', provider: 'link' },
  removedBy: 'agent',
  announcedRanges: () => [],
};

function checkKey(manifest: KubeManifest): string | undefined {
  const key = specOf(manifest).publicKey;
  const bytes = typeof key === 'string' ? Buffer.from(key, 'base64') : undefined;
  if (bytes?.length === 32 && bytes.toString('base64') === key && bytes.some((byte) => byte !== 0)) return undefined;
  return 'spec.publicKey is no WireGuard key; accepted is base64 of 32 bytes, not all zero';
}
