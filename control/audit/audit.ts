/** Who changed what, from where, before and after: written by the transaction that makes the change. */
import type { Caller } from '../access/caller.ts';
import type { ControlDeps, PageRequest } from '../deps.ts';
import type { Page } from '../ports/store.ts';

export interface AuditRecord {
  readonly id: string;
  readonly at: number;
  readonly principal: string;
  readonly from: string;
  readonly requestId: string;
  /** `peering.request`, `cluster.enroll`, `api-key.revoke`, … */
  readonly action: string;
  readonly subject: string;
  readonly before?: unknown;
  readonly after?: unknown;
}

export interface Audit {
  /** Newest first. */
  list(
    caller: Caller,
    page?: PageRequest & { readonly subject?: string },
    signal?: AbortSignal,
  ): Promise<Page<AuditRecord>>;
}

export function createAudit(_deps: ControlDeps): Audit {
  throw new Error('bodies follow');
}
