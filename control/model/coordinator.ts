/** What drives a peering on, as its callers see it. */
import type { ClusterRef } from '../ports/agent-channel.ts';

export interface Coordinator {
  /** Brings one peering up to date. False: there is none. */
  look(tenant: string, peering: string, signal?: AbortSignal): Promise<boolean>;
  /** Brings every peering of a cluster up to date. */
  lookAtCluster(cluster: ClusterRef, signal?: AbortSignal): Promise<void>;
  /** Not ended yet. */
  isLive(tenant: string, peering: string, signal?: AbortSignal): Promise<boolean>;
}
