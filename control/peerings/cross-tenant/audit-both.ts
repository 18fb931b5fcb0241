/** Audit records and events of a change that concerns two tenants. The other tenant learns that this one did it, but neither the principal nor the address. */
import type { Principal } from '../../access/caller.ts';
import { auditOps, type Change, eventOf } from '../../audit/record.ts';
import type { EventType } from '../../events/types.ts';
import type { ControlDeps } from '../../model/deps.ts';
import type { NewEvent, Op } from '../../ports/store.ts';

type Recorder = Pick<ControlDeps, 'clock' | 'ids'>;

export const auditBoth = (deps: Recorder, actor: Principal, tenants: readonly string[], change: Change): Op[] =>
  tenants.flatMap((tenant) =>
    auditOps(
      deps,
      tenant === actor.tenant
        ? actor
        : { tenant, principal: `tenant/${actor.tenant}`, from: 'broker', requestId: actor.requestId },
      change,
    ),
  );

export const eventBoth = (
  deps: Recorder,
  tenants: readonly string[],
  type: EventType,
  about: { readonly subject: string; readonly data: Readonly<Record<string, unknown>> },
): NewEvent[] => tenants.map((tenant) => eventOf(deps, tenant, type, about.subject, about.data));
