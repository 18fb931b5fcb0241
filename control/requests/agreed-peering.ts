/** The peering that a request becomes once the asked tenant has agreed, by a member or by a rule. */
import type { Principal } from '../access/caller.ts';
import type { CrossTenant } from '../model/cross-tenant.ts';
import { type CrossTenantDeps, planCrossTenant } from '../peerings/cross-tenant/create.ts';
import type { RequestRecord } from './request.ts';

/** How long both clusters have to agree once the tenant has. */
const agreeWithinMs = 7 * 86_400_000;

/** To be part of the transaction that approves the request. */
export async function planPeering(
  deps: CrossTenantDeps,
  actor: Principal,
  { request, byRule }: { readonly request: RequestRecord; readonly byRule: boolean },
  signal?: AbortSignal,
) {
  const { consumer, provider, resources } = request;
  const across: CrossTenant = {
    consumer: request.consumerTenant,
    provider: request.providerTenant,
    grant: {
      by: 'request',
      id: request.id,
      limits: resources,
      classes: [request.class],
      lapsesAt: deps.clock.now() + agreeWithinMs,
    },
  };
  const terms = { consumer, provider, resources, class: request.class };
  return planCrossTenant(deps, { who: actor, across, terms, byRule }, signal);
}
