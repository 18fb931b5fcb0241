/** How objects that controllers made for a peer are recognised. */
import type { KubeObject } from '#shared/domain/kube-object.ts';
import { label, name } from '#shared/domain/liqo-keys.ts';
import { networkName } from '#shared/domain/network-keys.ts';
import type { DesiredSet } from '#shared/schema/protocol/agent-protocol.ts';
import type { PeeringKey } from './kind.ts';

/** Where the objects of a peering are in this cluster. */
export const tenantNamespaceOf = (set: Pick<DesiredSet, 'peer'>): string => name.tenantNamespace(set.peer);

const isAtHome = ({ metadata }: KubeObject, set: PeeringKey): boolean => metadata.namespace === tenantNamespaceOf(set);
const namesPeer = ({ metadata }: KubeObject, set: PeeringKey): boolean =>
  metadata.labels?.[label.remoteClusterId] === set.peer;

/** In the tenant namespace, with the label of the peer. */
export const isOfPeer = (object: KubeObject, set: PeeringKey): boolean =>
  isAtHome(object, set) && namesPeer(object, set);

/** The virtual node of a provider. */
export const isVirtualNodeOf = (object: KubeObject, set: PeeringKey): boolean =>
  set.role === 'consumer' && namesPeer(object, set);

/** Made by the gateway of the link, whose name it has. */
export const isOfGateway = (object: KubeObject, set: PeeringKey): boolean =>
  isAtHome(object, set) && object.metadata.name === networkName.gateway(set.peer);

/** Replication to the provider, or from the consumer, by Liqo's labels. */
export function isReplicated(object: KubeObject, set: PeeringKey): boolean {
  const wanted =
    set.role === 'consumer'
      ? { [label.replication]: 'true', [label.remoteId]: set.peer }
      : { [label.replicated]: 'true', [label.originId]: set.peer };
  const labels = object.metadata.labels ?? {};
  return isAtHome(object, set) && Object.entries(wanted).every(([key, value]) => labels[key] === value);
}
