/** The agent channel port: a doorbell. What there is to fetch is told by `GET desired`, never by the channel. */
export interface ClusterRef {
  readonly tenant: string;
  readonly clusterId: string;
}

export interface AgentChannel {
  /**
   * Tells the cluster's agent that desired sets up to `revision` exist. Best effort, returns at once, never throws; an agent that is not
   * connected finds out at its next exchange.
   */
  ring(cluster: ClusterRef, revision: number): void;
}

/** For tests and for commands that run without agents. */
export const silentChannel: AgentChannel = { ring() {} };
