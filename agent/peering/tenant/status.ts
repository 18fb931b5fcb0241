/** The status of a Tenant: what this controller says, beside the conditions that others keep there. Pure. */
import { type Condition, removeCondition, setCondition } from '#kube/writes/conditions.ts';
import { type TenantStatus, tenantConditionType } from '#shared/schema/liqo/tenant.ts';

import type { CredentialChoice } from '../credentials/choice.ts';

type Granted = Pick<TenantStatus, 'tenantNamespace' | 'authParams'>;

const othersOf = (status: TenantStatus | undefined) =>
  status?.conditions?.filter(({ type }) => type !== tenantConditionType.handshake) ?? [];

export function withCredentials(before: TenantStatus | undefined, granted: Granted): TenantStatus {
  const conditions = othersOf(before);
  return { ...granted, ...(conditions.length > 0 && { conditions }) };
}

/** Says which credentials this cluster gives and why, where there was a choice. */
export function withChoice(
  conditions: TenantStatus['conditions'],
  choice: CredentialChoice | undefined,
  nowMs: number,
): Condition[] {
  const known = conditions as readonly Condition[] | undefined;
  const type = tenantConditionType.credentials;
  if (choice?.reason === undefined) return [...removeCondition(known, type)];
  const reason = choice.kind === 'token' ? 'Token' : 'Certificate';
  return [...setCondition(known, { type, status: 'True', reason, message: choice.reason }, nowMs)];
}

/** Says why there are none. `now`: RFC 3339. */
export function withoutCredentials(
  before: TenantStatus | undefined,
  { reason, message }: { readonly reason: string; readonly message: string },
  now: string,
): TenantStatus {
  const { authParams: _withheld, conditions = [], ...status } = before ?? {};
  const old = conditions.find(({ type }) => type === tenantConditionType.handshake);
  const isSame = old?.status === 'False' && old.reason === reason && old.message === message;
  const lastTransitionTime = old?.status === 'False' ? (old.lastTransitionTime ?? now) : now;
  const failed = { type: tenantConditionType.handshake, status: 'False' as const, reason, message, lastTransitionTime };
  return { ...status, conditions: [...othersOf(before), isSame ? old : failed] };
}
