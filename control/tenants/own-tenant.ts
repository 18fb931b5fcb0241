/** A tenant as its own members see it: name, state, limits and what is used of them. */
import { AppError } from '#shared/errors/app-error.ts';
import { type Caller, mustHave } from '../access/caller.ts';
import { auditOps, eventOf } from '../audit/record.ts';
import type { Capacity } from '../limits/capacity.ts';
import { hostedLimits } from '../limits/limits.ts';
import type { ControlDeps } from '../model/deps.ts';
import type { KnownTenants, TenantRecord } from '../model/tenant.ts';
import type { Item } from '../ports/store.ts';
import { key } from '../store/keys.ts';
import { changed, type TenantView, tenantView } from './tenant.ts';

export interface OwnTenantView extends TenantView {
  readonly usage: { readonly clusters: number; readonly peerings: number };
}

export interface OwnTenant {
  get(caller: Caller, signal?: AbortSignal): Promise<OwnTenantView>;
  rename(
    caller: Caller,
    displayName: string,
    options?: { readonly ifVersion?: number },
    signal?: AbortSignal,
  ): Promise<OwnTenantView>;
}

export function createOwnTenant(
  deps: Pick<ControlDeps, 'store' | 'clock' | 'ids' | 'limits'>,
  capacity: Capacity,
  known: KnownTenants,
): OwnTenant {
  const { store, limits: defaults = hostedLimits } = deps;

  async function load(caller: Caller, signal?: AbortSignal): Promise<Item<TenantRecord>> {
    const { pk, sk } = key.tenant(caller.tenant);
    const item = await store.get<TenantRecord>(pk, sk, signal);
    if (!item) throw new AppError('not_found', 'the tenant is deleted');
    return item;
  }

  async function view(record: TenantRecord, version: number, signal?: AbortSignal): Promise<OwnTenantView> {
    const [clusters, peerings] = await Promise.all([
      capacity.count(record.name, 'clusters', signal),
      capacity.count(record.name, 'peerings', signal),
    ]);
    return { ...tenantView(record, version, defaults), usage: { clusters, peerings } };
  }

  return {
    async get(caller, signal) {
      mustHave(caller, 'tenant:read');
      const { value, version } = await load(caller, signal);
      return view(value, version, signal);
    },

    async rename(caller, displayName, { ifVersion } = {}, signal) {
      mustHave(caller, 'tenant:write');
      const { value, version } = await load(caller, signal);
      if (ifVersion !== undefined && ifVersion !== version) {
        throw new AppError('precondition_failed', `the tenant has version ${version}, not ${ifVersion}`);
      }
      const next = changed(value, { displayName });
      const subject = `tenant/${caller.tenant}`;
      await store.transact(
        [
          { op: 'update', ...key.tenant(caller.tenant), value: next, ifVersion: version },
          ...auditOps(deps, caller, {
            action: 'tenant.rename',
            subject,
            before: { displayName: value.displayName ?? value.name },
            after: { displayName },
          }),
        ],
        [eventOf(deps, caller.tenant, 'tenant.changed', subject, { displayName })],
        signal,
      );
      known.forget(caller.tenant);
      return view(next, version + 1, signal);
    },
  };
}
