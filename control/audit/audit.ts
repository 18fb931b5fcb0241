/** Audit records: principal, address, and the object before and after. Written by the transaction that makes the change. */
import { type Caller, mustHave } from '../access/caller.ts';
import type { ControlDeps, PageRequest } from '../model/deps.ts';
import type { Page } from '../ports/store.ts';
import { auditFields, partition, sortableTime } from '../store/keys.ts';
import { pageOf, pageOfMany } from '../store/pages.ts';
import { lookupHash } from './lookup.ts';

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

export const createAudit = ({ store }: Pick<ControlDeps, 'store'>): Audit => ({
  async list(caller, filter = {}, signal) {
    mustHave(caller, 'audit:read');
    const { tenant } = caller;
    const { since, until } = filter;
    const fits = (record: AuditRecord): boolean =>
      auditFields.every((field) => filter[field] === undefined || filter[field] === record[field]);
    const within = (prefix: string) => ({
      reverse: true,
      from: prefix + (since === undefined ? '' : sortableTime(since)),
      to: prefix + (until === undefined ? '\x7f' : sortableTime(until)),
    });
    const field = auditFields.find((name) => filter[name] !== undefined);
    if (field === undefined) {
      const query = { partition: partition.audit(tenant), ...within('') };
      return pageOf<AuditRecord, AuditRecord>(store, query, filter, ({ value }) => value, signal);
    }
    const found = `${lookupHash(field, filter[field] ?? '')}/`;
    return pageOfMany<unknown, AuditRecord>(
      store,
      { partition: partition.auditBy(tenant), ...within(found) },
      filter,
      async (places) => {
        const keys = places.map(({ sk }) => ({ pk: partition.audit(tenant), sk: sk.slice(found.length) }));
        const records = await store.getMany<AuditRecord>({ keys }, signal);
        return records.map((record) => (record && fits(record.value) ? record.value : undefined));
      },
      signal,
    );
  },
});
