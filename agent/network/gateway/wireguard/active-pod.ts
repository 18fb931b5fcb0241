/** Which pod of a gateway carries the traffic: the node processes say so by a label. Pure. */
import type { Pod } from '#shared/domain/kube-object.ts';
import { networkLabel } from '#shared/domain/network-keys.ts';
import type { InternalEndpoint } from '#shared/schema/liqo/gateway-endpoint.ts';

export const isPodOf = (pod: Pod, namespace: string, gateway: string): boolean =>
  pod.metadata.namespace === namespace && pod.metadata.labels?.[networkLabel.gatewayName] === gateway;

const isUsable = ({ metadata, status, spec }: Pod): boolean =>
  metadata.deletionTimestamp === undefined &&
  metadata.labels?.[networkLabel.active] === 'true' &&
  status?.phase !== 'Failed' &&
  status?.phase !== 'Succeeded' &&
  Boolean(status?.podIP) &&
  Boolean(spec?.nodeName);

/** Two are labelled for a moment when the role moves: the younger one is where it moved to. */
export function activePod(pods: readonly Pod[]): Pod | undefined {
  const age = ({ metadata }: Pod): string => `${metadata.creationTimestamp ?? ''} ${metadata.name}`;
  return [...pods].filter(isUsable).sort((a, b) => (age(a) < age(b) ? 1 : -1))[0];
}

export const internalEndpointOf = (pod: Pod | undefined): InternalEndpoint | undefined =>
  pod?.status?.podIP === undefined || pod.spec?.nodeName === undefined
    ? undefined
    : { ip: pod.status.podIP, node: pod.spec.nodeName };
