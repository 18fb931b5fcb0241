/** Audit records: principal, address, and the object before and after. Written by the transaction that makes the change. */
import { type Caller, mustHave } from '../access/caller.ts';
import type { ControlDeps, PageRequest } from '../model/deps.ts';
import type { Page } from '../ports/store.ts';
import { partition, sortableTime } from '../store/keys.ts';
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

interface AuditFilter extends PageRequest {
  readonly subject?: string;
  readonly action?: string;
  readonly principal?: string;
  /** Milliseconds; the first inclusive, the second exclusive. Records lie in the order of time, so this is what makes a search short. */
  readonly since?: number;
  readonly until?: number;
}

export interface Audit {
  /** Newest first. */
  list(caller: Caller, filter?: AuditFilter, signal?: AbortSignal): Promise<Page<AuditRecord>>;
}

const fields = ['subject', 'action', 'principal'] as const;

export const createAudit = ({ store }: Pick<ControlDeps, 'store'>): Audit => ({
  async list(caller, filter = {}, signal) {
    mustHave(caller, 'audit:read');
    const { since, until } = filter;
    return pageOf<AuditRecord, AuditRecord>(
      store,
      {
        partition: partition.audit(caller.tenant),
        reverse: true,
        ...(since === undefined ? {} : { from: sortableTime(since) }),
        ...(until === undefined ? {} : { to: sortableTime(until) }),
      },
      filter,
      ({ value }) =>
        fields.every((field) => filter[field] === undefined || filter[field] === value[field]) ? value : undefined,
      signal,
    );
  },
});
