/** Use cases around peerings for people and portals: request, read, unpeer; and the sweep that bounds every delay. */
import type { Caller } from '../access/caller.ts';
import type { ControlDeps, PageRequest } from '../deps.ts';
import type { Page } from '../ports/store.ts';
import type { PeeringView, Resources } from './peering.ts';

export interface PeeringRequest {
  readonly consumer: string;
  readonly provider: string;
  /** Absent members are not limited by the request. */
  readonly resources: Resources;
  /** Default `default`. */
  readonly class?: string;
}

export interface PeeringFilter extends PageRequest {
  /** Also those that ended within the last day. */
  readonly includeGone?: boolean;
  /** Only those in which this cluster takes part. */
  readonly cluster?: string;
}

export interface Peerings {
  /**
   * Makes the peering, or, when the pair is peered already, changes its resources (`created: false`). Refusals change nothing:
   * `peer_self`, `cluster_unknown`, `invalid_input` (not a quantity), `policy_refused`, `in_use` (the pair is being unpeered).
   */
  request(
    caller: Caller,
    input: PeeringRequest,
    signal?: AbortSignal,
  ): Promise<{ readonly peering: PeeringView; readonly created: boolean }>;
  get(caller: Caller, id: string, signal?: AbortSignal): Promise<PeeringView>;
  /** The peering of a pair, also when it is gone but still kept. */
  find(caller: Caller, consumer: string, provider: string, signal?: AbortSignal): Promise<PeeringView>;
  list(caller: Caller, filter?: PeeringFilter, signal?: AbortSignal): Promise<Page<PeeringView>>;
  /** Starts the end of it, which always comes. Repeating changes nothing. `ifVersion` refuses with `precondition_failed`. */
  unpeer(
    caller: Caller,
    id: string,
    options?: { readonly ifVersion?: number },
    signal?: AbortSignal,
  ): Promise<PeeringView>;
  /** Looks at every peering whose time has come, in all tenants; returns when the next one is due. Called by a schedule. */
  sweep(signal?: AbortSignal): Promise<{ readonly nextDueAt?: number }>;
}

export function createPeerings(_deps: ControlDeps): Peerings {
  throw new Error('bodies follow');
}
