/**
 * What a link that is down says about its Node. When the provider falls silent altogether, link and API server go within seconds of each
 * other and come back so, in any order: that is an outage, which is left to the cluster's node lifecycle. A fault of the link alone is told.
 */
import type { NetworkState } from './node-object.ts';
import type { Answered } from './provider-health.ts';

export interface LinkSight {
  readonly network: NetworkState;
  /** When the link went down, by the clock. */
  readonly downSince: number;
  /** What the Node says until now. */
  readonly nodeReady: boolean;
  readonly answered: Answered;
}

/** After an outage a link has as long to come back as it has to answer at any other time. */
const comeBackMs = 10_000;

/** `up` also for a link that is down, while that may be part of an outage and the Node is Ready. */
export function linkVerdict({ network, downSince, nodeReady, answered }: LinkSight): NetworkState {
  if (network !== 'down' || !nodeReady) return network;
  const { lookedAt, since } = answered;
  return lookedAt >= downSince && lookedAt - since >= comeBackMs ? 'down' : 'up';
}
