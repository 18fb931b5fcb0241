/** Tenants: records and what others know of them. */
import type { Limits } from './limits.ts';

export interface KnownTenants {
  get(tenant: string, signal?: AbortSignal): Promise<TenantRecord | undefined>;
  limits(tenant: string, signal?: AbortSignal): Promise<Limits>;
  /** Throws `tenant_suspended`. */
  mustServe(tenant: string, signal?: AbortSignal): Promise<void>;
  /** Throws `tenant_suspended` or `tenant_deleting`. */
  mustBeActive(tenant: string, signal?: AbortSignal): Promise<void>;
  /** After a change made here. */
  forget(tenant: string): void;
}

export type TenantState = 'active' | 'suspended' | 'deleting';

export interface TenantRecord {
  readonly name: string;
  readonly displayName?: string;
  /** Absent: active. */
  readonly state?: TenantState;
  readonly createdAt: number;
  /** What the operator set; the deployment's defaults fill the rest. */
  readonly limits?: Partial<Limits>;
  readonly suspendedReason?: string;
  readonly deletion?: { readonly startedAt: number; readonly by: string };
}
