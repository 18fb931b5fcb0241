/** Clusters of a tenant: join tokens, enrolment, the agent's identity, facts, liveness, leaving. */
import type { ClusterFacts, EnrollRequest, EnrollResponse } from '#shared/schema/protocol/agent-protocol.ts';
import type { AgentCaller, Caller, Origin } from '../access/caller.ts';
import type { ControlDeps, PageRequest } from '../deps.ts';
import type { Page } from '../ports/store.ts';

export interface ClusterView {
  readonly id: string;
  readonly state: 'joined' | 'left';
  /** Heard within three heartbeats. */
  readonly online: boolean;
  readonly lastSeenAt: number;
  readonly joinedAt: number;
  readonly leftAt?: number;
  readonly facts: ClusterFacts;
  /** RFC 7638 thumbprint of the cluster's key. */
  readonly keyThumbprint: string;
  readonly version: number;
}

export interface IssuedJoinToken {
  /** `isthmus1.…`, shown once. */
  readonly token: string;
  readonly clusterId: string;
  readonly expiresAt: number;
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

export interface Clusters {
  createJoinToken(caller: Caller, clusterId: string, signal?: AbortSignal): Promise<IssuedJoinToken>;
  /**
   * Spends the token and pins the key. The request must be signed with that key (header `kid: enroll`). Repeating it with the same token
   * and key gives the same answer, so that a lost response does no harm; with another key it is `join_token_used`.
   */
  enroll(request: EnrollRequest, signed: SignedRequest, signal?: AbortSignal): Promise<EnrollResponse>;
  /** Verifies signature, audience, path, body and freshness, and notes that the cluster was heard. */
  authenticateAgent(signed: SignedRequest, signal?: AbortSignal): Promise<AgentCaller>;
  /** Notes that the cluster was heard: for pings over the WebSocket. */
  heard(cluster: { readonly tenant: string; readonly clusterId: string }, signal?: AbortSignal): Promise<void>;
  get(caller: Caller, id: string, signal?: AbortSignal): Promise<ClusterView>;
  list(
    caller: Caller,
    page?: PageRequest & { readonly includeLeft?: boolean },
    signal?: AbortSignal,
  ): Promise<Page<ClusterView>>;
  /**
   * The cluster leaves: its key is no longer accepted. `in_use` while it has peerings, unless `force`, which ends them all and treats this
   * side as dead.
   */
  remove(
    caller: Caller,
    id: string,
    options?: { readonly force?: boolean },
    signal?: AbortSignal,
  ): Promise<ClusterView>;
}

export function createClusters(_deps: ControlDeps): Clusters {
  throw new Error('bodies follow');
}
