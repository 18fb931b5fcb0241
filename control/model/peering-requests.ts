/** What a peering is asked for with, and the answers. */
import type * as z from 'zod';
import type { AskAnswer, PeeringAsk } from '#shared/schema/protocol/agent-protocol.ts';
import type { AgentCaller, Principal } from '../access/caller.ts';
import type { ClusterRef } from '../ports/agent-channel.ts';
import type { Item } from '../ports/store.ts';
import type { Labels } from './labels.ts';
import type { AskedNetwork } from './network-terms.ts';
import type { Resources } from './peering.ts';
import type { PeeringRecord, PeeringSpec } from './peering-records.ts';

export type Answer = z.infer<typeof AskAnswer>;

export interface InClusterRequests {
  /** Takes over what the cluster asks for now: all of it. */
  accept(agent: AgentCaller, asks: readonly PeeringAsk[], signal?: AbortSignal): Promise<void>;
  /** Tries again what was refused: a policy may have changed, an earlier peering may have ended. */
  review(cluster: ClusterRef, signal?: AbortSignal): Promise<void>;
  /** Tries again what this cluster was asked for, or asks for, in vain: it came, or says something else of itself. */
  reviewAbout(cluster: ClusterRef, signal?: AbortSignal): Promise<void>;
  answers(cluster: ClusterRef, signal?: AbortSignal): Promise<Answer[]>;
}

/** As people and portals ask, or a `Peering` object does. */
export type Ask = NonNullable<PeeringSpec['ask']>;

export type RequestWithOrigin = PeeringRequest & { readonly ask?: Ask };

export interface Requests {
  request(
    actor: Principal,
    input: RequestWithOrigin,
    signal?: AbortSignal,
  ): Promise<{ readonly id: string; readonly created: boolean }>;
  unpeer(actor: Principal, id: string, options?: UnpeerOptions, signal?: AbortSignal): Promise<void>;
  /** The `Peering` object of this UID no longer has to do with the peering, which goes on. */
  release(tenant: string, id: string, uid: string, signal?: AbortSignal): Promise<void>;
  loadPair(
    tenant: string,
    consumer: string,
    provider: string,
    signal?: AbortSignal,
  ): Promise<Item<PeeringRecord> | undefined>;
}

export interface PeeringRequest {
  readonly consumer: string;
  readonly provider: string;
  /** Absent members are not limited by the request. */
  readonly resources: Resources;
  /** Default `default`. */
  readonly class?: string;
  /** What is left out stays as it is, or takes its default. */
  readonly network?: AskedNetwork | undefined;
  /** All that it is to have; absent: a peering that is there keeps those that it has. */
  readonly labels?: Labels | undefined;
}

export interface UnpeerOptions {
  /** Refuses with `precondition_failed` when the peering has another version. */
  readonly ifVersion?: number;
  /** Not to wait for a side whose agent is silent now and at a second look. Refused with `peer_alive` while both are heard. */
  readonly force?: boolean;
}
