/** Clusters: records and views. */
import type { ClusterFacts } from '#shared/schema/protocol/agent-protocol.ts';
import type { Origin } from '../access/caller.ts';
import type { Labels } from './labels.ts';

export interface ClusterView {
  readonly id: string;
  readonly state: 'joined' | 'left';
  /** Not missing for three heartbeats, nor for two minutes since its doorbell closed. */
  readonly online: boolean;
  readonly lastSeenAt: number;
  readonly joinedAt: number;
  readonly leftAt?: number;
  readonly labels: Labels;
  readonly facts: ClusterFacts;
  readonly publicAddresses: readonly string[];
  /** RFC 7638 thumbprint of the cluster's key. */
  readonly keyThumbprint: string;
  readonly version: number;
}

/** The parts of an HTTP request that an agent's signature covers. */
export interface SignedRequest extends Origin {
  /** The whole header value, `Bearer …`. */
  readonly authorization: string | undefined;
  readonly method: string;
  /** Path without query. */
  readonly path: string;
  /** The bytes as received; empty when there was no body. */
  readonly body: Uint8Array;
}

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

export interface SeenRecord {
  /** When the agent was last heard, give or take a heartbeat. */
  readonly at: number;
  /** How often it is to be heard, in seconds. Absent: 30. */
  readonly every?: number;
  /** When its last doorbell connection closed; absent again as soon as it is heard. */
  readonly lostAt?: number;
}
