/** A peering of two tenants as one of them sees it. */
import type { Resources } from './peering.ts';

/** How the provider's tenant agreed, and to how much. */
export interface Grant {
  readonly by: 'invitation' | 'request';
  readonly id: string;
  readonly limits: Resources;
  readonly classes: readonly string[];
  /** Unless both clusters have agreed by then, the peering ends. */
  readonly lapsesAt: number;
}

/** The tenants of both sides. */
export interface CrossTenant {
  readonly consumer: string;
  readonly provider: string;
  readonly grant: Grant;
}

export interface PeerOfCluster {
  readonly tenant: string;
  /** The peering in which this cluster is the consumer of that peer. */
  readonly consumer?: string;
  readonly provider?: string;
}
