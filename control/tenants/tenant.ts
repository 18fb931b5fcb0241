/** What the broker keeps about a tenant, and what its members and the operator see of it. */
import { AppError } from '#shared/errors/app-error.ts';
import { checkLimits } from '../limits/limits.ts';
import type { Limits } from '../model/limits.ts';
import type { TenantRecord, TenantState } from '../model/tenant.ts';

export interface TenantView {
  readonly name: string;
  readonly displayName: string;
  readonly state: TenantState;
  readonly createdAt: number;
  readonly limits: Limits;
  readonly suspendedReason?: string;
  readonly deletionStartedAt?: number;
  readonly version: number;
}

export interface TenantChange {
  readonly displayName?: string;
  readonly state?: 'active' | 'suspended';
  readonly reason?: string;
  /** `null` takes an override back. */
  readonly limits?: Readonly<Partial<Record<keyof Limits, number | null>>>;
}

const tenantName = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;
/** Words with a meaning of their own in paths. */
const reserved = new Set(['me', 'system']);

export function checkTenantName(name: string): void {
  if (tenantName.test(name) && !reserved.has(name)) return;
  throw new AppError(
    'invalid_input',
    `tenant ${JSON.stringify(name)} must be a DNS-1123 label of at most 63 characters, and not ${[...reserved].join(' or ')}`,
    { detail: { field: 'name', value: name } },
  );
}

export const stateOf = ({ state = 'active' }: TenantRecord): TenantState => state;

export const limitsOf = (record: TenantRecord | undefined, defaults: Limits): Limits => ({
  ...defaults,
  ...record?.limits,
});

export const tenantView = (record: TenantRecord, version: number, defaults: Limits): TenantView => ({
  name: record.name,
  displayName: record.displayName ?? record.name,
  state: stateOf(record),
  createdAt: record.createdAt,
  limits: limitsOf(record, defaults),
  ...(record.suspendedReason === undefined ? {} : { suspendedReason: record.suspendedReason }),
  ...(record.deletion === undefined ? {} : { deletionStartedAt: record.deletion.startedAt }),
  version,
});

/** The record after a change; refuses what cannot be. */
export function changed(record: TenantRecord, { displayName, state, reason, limits }: TenantChange): TenantRecord {
  if (record.state === 'deleting') throw new AppError('tenant_deleting', `tenant ${record.name} is being deleted`);
  const { suspendedReason: before, ...rest } = record;
  const nextState = state ?? stateOf(record);
  const suspendedReason = nextState === 'suspended' ? (reason ?? before) : undefined;
  const merged = Object.fromEntries(
    Object.entries({ ...record.limits, ...limits }).filter(([, value]) => value !== null),
  );
  checkLimits(merged);
  return {
    ...rest,
    state: nextState,
    ...(displayName === undefined ? {} : { displayName }),
    ...(suspendedReason === undefined ? {} : { suspendedReason }),
    limits: merged,
  };
}
