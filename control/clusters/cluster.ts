/** What the broker keeps about a cluster, and when it counts as online. */
import type { ClusterFacts } from '#shared/schema/protocol/agent-protocol.ts';
import type { ClusterView } from './clusters.ts';
import { offlineFrom } from './pace.ts';

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
  /** When the agent was last heard, give or take a heartbeat. */
  readonly at: number;
  /** How often it is to be heard, in seconds. Absent: 30. */
  readonly every?: number;
  /** When its last doorbell connection closed; absent again as soon as it is heard. */
  readonly lostAt?: number;
}

export function clusterView(
  record: ClusterRecord,
  version: number,
  seen: SeenRecord | undefined,
  now: number,
): ClusterView {
  const heard = seen ?? { at: record.joinedAt };
  return {
    id: record.id,
    state: record.state,
    online: record.state === 'joined' && now < offlineFrom(heard),
    lastSeenAt: heard.at,
    joinedAt: record.joinedAt,
    ...(record.leftAt === undefined ? {} : { leftAt: record.leftAt }),
    facts: record.facts,
    keyThumbprint: record.keyThumbprint,
    version,
  };
}
