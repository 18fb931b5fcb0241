/** Shapes the audit record and the event that a change carries in its own transaction. */
import type { Clock } from '#shared/ports/clock.ts';
import type { Ids } from '#shared/ports/ids.ts';
import type { Principal } from '../access/caller.ts';
import type { EventType } from '../events/types.ts';
import type { NewEvent, Op } from '../ports/store.ts';
import { auditFields, key } from '../store/keys.ts';
import type { AuditRecord } from './audit.ts';
import { lookupHash } from './lookup.ts';

/** Audit records are kept for 400 days: a year and the time to notice. */
const auditKeptMs = 400 * 86_400_000;

export interface Change {
  readonly action: string;
  readonly subject: string;
  readonly before?: unknown;
  readonly after?: unknown;
}

interface Recorder {
  readonly clock: Clock;
  readonly ids: Ids;
}

/** The record, and the three places where it is found by what people look for. */
export function auditOps({ clock, ids }: Recorder, actor: Principal, change: Change): Op[] {
  const at = clock.now();
  const id = ids.next('au');
  const record: AuditRecord = {
    id,
    at,
    principal: actor.principal,
    from: actor.from,
    requestId: actor.requestId,
    ...change,
  };
  const expiresAt = at + auditKeptMs;
  return [
    { op: 'put', ...key.audit(actor.tenant, at, id), value: record, expiresAt },
    ...auditFields.map(
      (field): Op => ({
        op: 'set',
        ...key.auditBy(actor.tenant, lookupHash(field, record[field]), at, id),
        value: {},
        expiresAt,
      }),
    ),
  ];
}

export function eventOf(
  { clock, ids }: Recorder,
  tenant: string,
  type: EventType,
  subject: string,
  data: Readonly<Record<string, unknown>> = {},
): NewEvent {
  return { id: ids.next('ev'), stream: tenant, type, subject, at: clock.now(), data };
}

/** Changes that the broker makes by itself; `requestId`: of the request that they follow from. */
export const systemPrincipal = (tenant: string, requestId = ''): Principal => ({
  tenant,
  principal: 'system',
  from: 'broker',
  requestId,
});

/** For what remembers the request that it was made by. */
export const traced = ({ requestId }: Pick<Principal, 'requestId'>): { readonly requestId?: string } =>
  requestId === '' ? {} : { requestId };
