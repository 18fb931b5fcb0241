/** The network part of a peering's terms. */
import type { GatewayServiceType } from '#shared/schema/api/network.ts';
import type { PeeringRole } from '#shared/schema/protocol/agent-protocol.ts';

export interface NetworkTerms {
  readonly enabled: boolean;
  /** The side that is dialled. */
  readonly gatewayLocation: PeeringRole;
  readonly mtu: number;
  /** Absent: the value known to work where the gateway runs. */
  readonly serviceType?: GatewayServiceType;
  /** The provider's API server is reached through the link. */
  readonly inBand: boolean;
}

/** `undefined` members: as before, or the default. */
export type AskedNetwork = { readonly [K in keyof NetworkTerms]?: NetworkTerms[K] | undefined };
