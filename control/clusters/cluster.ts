/** What the broker keeps about a cluster, and when it counts as online. */
import { parseAddress, rangeProblem } from '#shared/domain/cidr.ts';
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
  /** The tenant's own words. */
  readonly labels?: Readonly<Record<string, string>>;
  /** From which its agent was seen lately, the newest first: its peers may find it there, too. */
  readonly publicAddresses?: readonly string[];
  readonly publicKey: PublicJwk;
  readonly keyThumbprint: string;
}

const addressesKept = 2;

/** A cluster that leaves by two ways in turn must not look as if it moved each time. */
export function seenFrom(address: string, before: readonly string[] = []): readonly string[] {
  const mayBeDialled = parseAddress(address) !== undefined && rangeProblem(`${address}/32`) === undefined;
  return !mayBeDialled || before.includes(address) ? before : [address, ...before].slice(0, addressesKept);
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
    labels: record.labels ?? {},
    facts: record.facts,
    publicAddresses: record.publicAddresses ?? [],
    keyThumbprint: record.keyThumbprint,
    version,
  };
}
