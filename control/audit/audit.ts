/** Audit records: principal, address, and the object before and after. Written by the transaction that makes the change. */
import { type Caller, mustHave } from '../access/caller.ts';
import type { ControlDeps, PageRequest } from '../model/deps.ts';
import type { Page } from '../ports/store.ts';
import { partition } from '../store/keys.ts';
import { pageOf } from '../store/pages.ts';

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

export const createAudit = ({ store }: Pick<ControlDeps, 'store'>): Audit => ({
  async list(caller, page = {}, signal) {
    mustHave(caller, 'audit:read');
    return pageOf<AuditRecord, AuditRecord>(
      store,
      { partition: partition.audit(caller.tenant), reverse: true },
      page,
      ({ value }) => (page.subject === undefined || page.subject === value.subject ? value : undefined),
      signal,
    );
  },
});
