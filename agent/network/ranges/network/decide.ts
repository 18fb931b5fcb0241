/** What a Network says about its grant. Pure. */
import type { Grant } from '#agent/network/ipam/ipam.ts';
import { type Condition, setCondition } from '#kube/writes/conditions.ts';
import type { Network, NetworkStatus } from '#shared/schema/liqo/network.ts';

const grantedCondition = 'Granted';

/** A range once granted is never taken back by its status, only by deletion. */
export function networkStatus(network: Network, grant: Grant, nowMs: number): NetworkStatus {
  const { generation } = network.metadata;
  const refused = 'refused' in grant ? grant.refused : undefined;
  const cidr = 'granted' in grant ? grant.granted : network.status?.cidr;
  const input = {
    type: grantedCondition,
    status: refused ? 'False' : 'True',
    reason: refused?.reason ?? 'Granted',
    message: refused?.message ?? (cidr === network.spec.cidr ? 'as wanted' : `${network.spec.cidr} is in use: moved`),
    ...(generation === undefined ? {} : { observedGeneration: generation }),
  } as const;
  const conditions = setCondition(network.status?.conditions as readonly Condition[] | undefined, input, nowMs);
  return { ...(cidr === undefined ? {} : { cidr }), conditions: [...conditions] };
}
