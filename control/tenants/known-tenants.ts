/**
 * The tenants that this process serves, read at most every ten seconds: state and limits are needed by every request. So a suspension or a
 * new limit takes ten seconds to reach other processes, and none where it was made.
 */
import { AppError } from '#shared/errors/app-error.ts';
import { hostedLimits } from '../limits/limits.ts';
import type { ControlDeps } from '../model/deps.ts';
import type { KnownTenants, TenantRecord } from '../model/tenant.ts';
import { key } from '../store/keys.ts';
import { limitsOf, stateOf } from './tenant.ts';

const keptMs = 10_000;
const maxKept = 50_000;

export function createKnownTenants({
  store,
  clock,
  limits: defaults = hostedLimits,
}: Pick<ControlDeps, 'store' | 'clock' | 'limits'>): KnownTenants {
  const kept = new Map<string, { readonly record: TenantRecord; readonly at: number }>();

  async function get(tenant: string, signal?: AbortSignal): Promise<TenantRecord | undefined> {
    const found = kept.get(tenant);
    if (found && clock.now() - found.at < keptMs) return found.record;
    kept.delete(tenant);
    const at = clock.now();
    const { pk, sk } = key.tenant(tenant);
    const item = await store.get<TenantRecord>(pk, sk, signal);
    if (!item) return undefined;
    if (kept.size >= maxKept) kept.delete(kept.keys().next().value ?? '');
    kept.set(tenant, { record: item.value, at });
    return item.value;
  }

  async function mustServe(tenant: string, signal?: AbortSignal): Promise<void> {
    const record = await get(tenant, signal);
    if (record?.state !== 'suspended') return;
    const why = record.suspendedReason === undefined ? '' : `: ${record.suspendedReason}`;
    throw new AppError('tenant_suspended', `tenant ${tenant} is suspended${why}`);
  }

  return {
    get,
    mustServe,
    limits: async (tenant, signal) => limitsOf(await get(tenant, signal), defaults),
    async mustBeActive(tenant, signal) {
      await mustServe(tenant, signal);
      const record = await get(tenant, signal);
      if (record && stateOf(record) === 'deleting') {
        throw new AppError('tenant_deleting', `tenant ${tenant} is being deleted; it can only be read`);
      }
    },
    forget: (tenant) => void kept.delete(tenant),
  };
}
