/** The provider's answer to a slice, as its status. Pure. */
import type { Node } from '#shared/domain/kube-object.ts';
import type { AuthParams, StorageType } from '#shared/schema/definition/fields.ts';
import type { ProviderCondition, ResourceSlice } from '#shared/schema/liqo/resource-slice.ts';
import type { Tenant } from '#shared/schema/liqo/tenant.ts';
import type { Grant } from './grant.ts';

type Status = NonNullable<ResourceSlice['status']>;
type Condition = NonNullable<Status['conditions']>[number];
/** The consumer empties and removes the virtual node of a slice that is denied for this reason. */
export const drainedReason = 'ResourceSliceDrained';

type Verdict = Pick<Condition, 'status' | 'reason' | 'message'>;

export interface SliceFacts {
  readonly authentication: { readonly authParams: AuthParams } | { readonly denied: string };
  readonly tenantCondition: Tenant['spec']['tenantCondition'];
  /** Undefined: a class that an external controller answers for. */
  readonly grant: Grant | undefined;
  /** What is offered once the grant is accepted. */
  readonly storageClasses: readonly StorageType[];
  readonly nodeLabels: Readonly<Record<string, string>>;
  readonly nodeConditions: readonly ProviderCondition[];
  /** The administrator takes this slice's grant back. */
  readonly drained: boolean;
  readonly nowMs: number;
}

/** The conditions with `type` set; its transition time moves only when its status does. */
function withCondition(
  conditions: readonly Condition[],
  type: Condition['type'],
  verdict: Verdict,
  nowMs: number,
): Condition[] {
  const before = conditions.find((condition) => condition.type === type);
  const lastTransitionTime =
    before?.status === verdict.status && before.lastTransitionTime !== undefined
      ? before.lastTransitionTime
      : new Date(Math.floor(nowMs / 1000) * 1000).toISOString().replace('.000Z', 'Z');
  const rest = conditions.filter((condition) => condition.type !== type);
  return [...rest, { type, ...verdict, lastTransitionTime }].sort((a, b) => (a.type < b.type ? -1 : 1));
}

export function answer(slice: ResourceSlice, facts: SliceFacts): Status {
  const { authentication, nowMs } = facts;
  const status: Status = { ...slice.status };
  const before = status.conditions ?? [];
  if ('denied' in authentication) {
    delete status.authParams;
    delete status.resources;
    const verdict: Verdict = {
      status: 'Denied',
      reason: 'ResourceSliceAuthenticationDenied',
      message: authentication.denied,
    };
    status.conditions = withCondition(before, 'Authentication', verdict, nowMs).filter(
      ({ type }) => type === 'Authentication',
    );
    return status;
  }
  const accepted: Verdict = {
    status: 'Accepted',
    reason: 'ResourceSliceAuthenticationAccepted',
    message:
      authentication.authParams.sealedToken === undefined
        ? 'the certificate request was signed'
        : 'a token was issued, sealed to the key of the certificate request',
  };
  status.authParams = authentication.authParams;
  status.conditions = withCondition(before, 'Authentication', accepted, nowMs);
  return withResources(status, facts);
}

function withResources(before: Status, facts: SliceFacts): Status {
  const { tenantCondition, grant, storageClasses, nodeLabels, nodeConditions, drained, nowMs } = facts;
  const status: Status = { ...before, nodeConditions: [...nodeConditions] };
  const conditions = status.conditions ?? [];
  const set = (verdict: Verdict): Condition[] => withCondition(conditions, 'Resources', verdict, nowMs);
  const isAnswered = conditions.some(({ type }) => type === 'Resources');
  if (tenantCondition !== 'Active') {
    // A cordon leaves what was granted; a drain does not.
    if (tenantCondition === 'Cordoned' && isAnswered) return status;
    const message = `the provider has this consumer ${tenantCondition === 'Cordoned' ? 'cordoned' : 'drained'}; ask its administrator`;
    const { resources: _withdrawn, storageClasses: _offered, ...rest } = status;
    return { ...rest, conditions: set({ status: 'Denied', reason: 'ResourceSliceResourcesDenied', message }) };
  }
  if (drained) {
    const message = 'the administrator of the provider drains this slice: its node is emptied and goes';
    const { resources: _withdrawn, storageClasses: _offered, ...rest } = status;
    return { ...rest, conditions: set({ status: 'Denied', reason: drainedReason, message }) };
  }
  if (grant === undefined) return status;
  if (!grant.accepted) {
    const { resources: _withdrawn, storageClasses: _offered, ...rest } = status;
    return { ...rest, conditions: set({ status: 'Denied', reason: grant.reason, message: grant.message }) };
  }
  const { nodeLabels: _before, storageClasses: _offered, ...rest } = status;
  return {
    ...rest,
    resources: grant.resources,
    ...(storageClasses.length > 0 && { storageClasses: [...storageClasses] }),
    ...(Object.keys(nodeLabels).length === 0 ? {} : { nodeLabels: { ...nodeLabels } }),
    conditions: set({
      status: 'Accepted',
      reason: 'ResourceSliceResourcesAccepted',
      message:
        grant.less === undefined
          ? 'granted by the default class'
          : `granted by the default class as far as there is: ${grant.less}`,
    }),
  };
}

const platformLabels = ['kubernetes.io/arch', 'kubernetes.io/os'] as const;

/** What most nodes of this provider are: a pod chosen for the virtual node by architecture must find that architecture here. */
export function platformOf(nodes: readonly Node[]): Record<string, string> {
  const platform: Record<string, string> = {};
  for (const key of platformLabels) {
    const counts = new Map<string, number>();
    for (const node of nodes) {
      const value = node.metadata.labels?.[key];
      if (value !== undefined) counts.set(value, (counts.get(value) ?? 0) + 1);
    }
    const [most] = [...counts].sort(([a, n], [b, m]) => m - n || (a < b ? -1 : 1));
    if (most !== undefined) platform[key] = most[0];
  }
  return platform;
}
