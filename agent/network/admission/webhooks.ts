/**
 * Hooks of the network kinds. They read competing objects from the API server: with cache lag, two conflicting objects created in a row would both
 * pass.
 */
import { randomUUID } from 'node:crypto';
import type { Hook } from '#agent/admission/hook.ts';
import { allow, type Verdict } from '#agent/admission/review.ts';
import type { KubeApi } from '#kube/model/types.ts';
import type { KubeObject, ResourceType } from '#shared/domain/kube-object.ts';
import type { Configuration } from '#shared/schema/liqo/configuration.ts';
import type { FirewallConfiguration } from '#shared/schema/liqo/firewall-configuration.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import { ruleNamePatch, validateFirewall } from './firewall-configuration.ts';
import { keepsSpec, validateConfiguration, validateGateway, validateNetwork } from './network-kinds.ts';
import { validateRoutes } from './route-configuration.ts';

type Validate<T extends KubeObject> = (before: T | undefined, after: T, others: readonly T[]) => Verdict;

export function createNetworkHooks(api: KubeApi): readonly (readonly [path: string, hook: Hook])[] {
  const among =
    <T extends KubeObject>(types: readonly ResourceType<T>[], validate: Validate<T>): Hook =>
    async ({ object, before }, signal) => {
      if (!object || keepsSpec(before, object)) return allow;
      const others = await Promise.all(types.map((type) => api.list(type, {}, signal)));
      return validate(before as T | undefined, object as T, others.flat());
    };
  const { gatewayServers, gatewayClients, networks, routeConfigurations, firewallConfigurations } = networkKinds;
  return [
    [
      '/mutate/firewallconfigurations',
      ({ object }) => (object ? { allowed: true, patch: ruleNamePatch(object, randomUUID) } : allow),
    ],
    ['/validate/firewallconfigurations', among<FirewallConfiguration>([firewallConfigurations], validateFirewall)],
    ['/validate/routeconfigurations', among([routeConfigurations], validateRoutes)],
    [
      '/validate/configurations',
      ({ object, before }) =>
        object ? validateConfiguration(before as Configuration | undefined, object as Configuration) : allow,
    ],
    ['/validate/gateways', among<KubeObject>([gatewayServers, gatewayClients], validateGateway)],
    ['/validate/networks', among([networks], validateNetwork)],
  ];
}
