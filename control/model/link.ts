/** The link of a peering: its two ends and its ranges. */
import type { GatewayServiceType } from '#shared/schema/api/network.ts';
import type { linkValues } from '#shared/schema/protocol/observed-data.ts';
import type { NetworkTerms } from './network-terms.ts';

/** How it is laid out. The same in both peerings of a pair. */
export interface LinkLayout {
  /** The cluster that is dialled. */
  readonly server: string;
  readonly mtu: number;
  readonly serviceType: GatewayServiceType;
  /** The peering that decided, and when: of two that decided at once, the earlier holds. */
  readonly by: string;
  readonly at: number;
}

interface LinkRanges {
  readonly pod: readonly string[];
  readonly external: readonly string[];
}

/** What is known of one side. What a later report lacks stays. */
export interface LinkEnd {
  /** The ranges that this side really has. */
  readonly ranges?: LinkRanges;
  /** base64 of its WireGuard key. */
  readonly key?: string;
  /** `address:port`, where its gateway may be reached; the likeliest first. */
  readonly candidates: readonly string[];
  readonly connection?: ConnectionReport & {
    /** When this was reported. */
    readonly reportedAt: number;
  };
}

export interface Link {
  readonly layout: LinkLayout;
  /** What this peering asked for when the layout was taken over: a change of mind shows. */
  readonly asked: Pick<NetworkTerms, 'gatewayLocation' | 'mtu' | 'serviceType'>;
  readonly consumer: LinkEnd;
  readonly provider: LinkEnd;
}

export interface ConnectionReport {
  readonly value: (typeof linkValues)[number] | 'Unknown';
  /** Absent: not measured. */
  readonly latency?: string;
  readonly mtu?: number;
  readonly peerEndpoint?: string;
  /** RFC 3339, by the clock of that cluster. */
  readonly lastHandshakeTime?: string;
  readonly packetLoss?: number;
  readonly throughput?: Throughput;
}

/** Bytes per second through the tunnel. */
export interface Throughput {
  readonly received: number;
  readonly sent: number;
}
