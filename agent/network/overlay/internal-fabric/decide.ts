/** One gateway's end of the overlay. Pure. */
import type { Applied } from '#kube/model/types.ts';
import { findCondition } from '#kube/writes/conditions.ts';
import { apiVersionOf, type KubeObject, type OwnerReference } from '#shared/domain/kube-object.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import { defaultMtu, isthmusNetworkAnnotation, networkCidrsConfigured } from '#shared/domain/network-keys.ts';
import type { Configuration } from '#shared/schema/liqo/configuration.ts';
import type { Connection } from '#shared/schema/liqo/connection.ts';
import type { GatewayClient } from '#shared/schema/liqo/gateway-client.ts';
import type { GatewayServer } from '#shared/schema/liqo/gateway-server.ts';
import type { InternalFabric } from '#shared/schema/liqo/internal-fabric.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import { interfaceName } from '../internal-node/decide.ts';

/** True for what the Configuration says now, not for what it said before. */
export function isConfigured({ metadata, status }: Configuration): boolean {
  const condition = findCondition(status?.conditions, networkCidrsConfigured);
  return condition?.status === 'True' && condition.observedGeneration === metadata.generation;
}

export interface InternalFabricInput {
  readonly gateway: GatewayServer | GatewayClient;
  readonly peer: string;
  readonly owner: OwnerReference;
  readonly configuration: Configuration;
  readonly connection: Connection | undefined;
  /** Of the active gateway pod. */
  readonly gatewayIp: string;
  readonly overlayAddress: string;
  readonly tunnelId: number;
}

export function buildInternalFabric(input: InternalFabricInput): Applied<InternalFabric> {
  const { gateway, configuration, connection } = input;
  const { name, namespace = '' } = gateway.metadata;
  const { pod = [], external = [] } = configuration.status?.remote?.cidr ?? {};
  return {
    apiVersion: apiVersionOf(networkKinds.internalFabrics),
    kind: networkKinds.internalFabrics.kind,
    metadata: {
      name,
      namespace,
      labels: { [label.managed]: 'true', [label.remoteClusterId]: input.peer },
      annotations: { [isthmusNetworkAnnotation.vni]: String(input.tunnelId) },
      ownerReferences: [input.owner],
    },
    spec: {
      mtu: Math.min(gateway.spec.mtu ?? defaultMtu, connection?.status?.mtu ?? most, peerMtu(gateway) ?? most),
      remoteCIDRs: [...new Set([...pod, ...external])],
      interface: {
        node: { name: interfaceName(`gateway ${namespace}/${name}`) },
        gateway: { ip: input.overlayAddress },
      },
      gatewayIP: input.gatewayIp,
    },
  };
}

const most = Number.POSITIVE_INFINITY;

/** What the other side found on the path, as it came by the broker. */
function peerMtu({ metadata }: KubeObject): number | undefined {
  const text = metadata.annotations?.[isthmusNetworkAnnotation.peerMtu] ?? '';
  return /^[1-9][0-9]{2,4}$/.test(text) ? Number(text) : undefined;
}

/** 1 to 2^24 - 1. `random` gives three bytes. */
export function pickTunnelId(isTaken: (id: number) => boolean, random: () => Uint8Array): number {
  for (;;) {
    const [a = 0, b = 0, c = 0] = random();
    const id = a * 65_536 + b * 256 + c;
    if (id > 0 && !isTaken(id)) return id;
  }
}
