/** Limits of a tenant. */

export interface Limits {
  /** Clusters that have joined and not left. */
  readonly clusters: number;
  /** Peerings that have not ended. */
  readonly peerings: number;
  /** Requests of members and keys. */
  readonly requestsPerMinute: number;
  /** Requests of agents: what happens in the clusters of the tenant. */
  readonly eventsPerMinute: number;
}
