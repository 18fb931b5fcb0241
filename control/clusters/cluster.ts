/** What the broker keeps about a cluster, and when it counts as online. */
import type { ClusterFacts } from '#shared/schema/protocol/agent-protocol.ts';
import type { ClusterView } from './clusters.ts';

export interface PublicJwk {
  readonly kty: 'OKP';
  readonly crv: 'Ed25519';
  readonly x: string;
}

export interface ClusterRecord {
  readonly id: string;
  readonly state: 'joined' | 'left';
  readonly joinedAt: number;
  readonly leftAt?: number;
  readonly facts: ClusterFacts;
  readonly publicKey: PublicJwk;
  readonly keyThumbprint: string;
}

export interface SeenRecord {
  /** When the agent was last heard, give or take a third of a heartbeat. */
  readonly at: number;
  /** The newest desired revision that the agent said it has applied. */
  readonly acked: number;
}

export const defaultHeartbeatSeconds = 30;

/** A cluster unheard for longer counts as offline. */
export const silenceMsOf = (heartbeatSeconds: number = defaultHeartbeatSeconds): number => 3 * heartbeatSeconds * 1_000;

export function clusterView(
  record: ClusterRecord,
  version: number,
  seen: SeenRecord | undefined,
  at: { readonly now: number; readonly silenceMs: number },
): ClusterView {
  const lastSeenAt = seen?.at ?? record.joinedAt;
  return {
    id: record.id,
    state: record.state,
    online: record.state === 'joined' && at.now - lastSeenAt < at.silenceMs,
    lastSeenAt,
    joinedAt: record.joinedAt,
    ...(record.leftAt === undefined ? {} : { leftAt: record.leftAt }),
    facts: record.facts,
    keyThumbprint: record.keyThumbprint,
    version,
  };
}
