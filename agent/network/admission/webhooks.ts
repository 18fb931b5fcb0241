/**
 * Hooks of the network kinds. They read competing objects from the API server: with cache lag, two conflicting objects created in a row would both
 * pass.
 */
import { randomUUID } from 'node:crypto';
import type { Hook } from '#agent/admission/hook.ts';
import { allow, deny, type Review, type Verdict } from '#agent/admission/review.ts';
import { linkRefusal } from '#agent/model/policies.ts';
import { isAllowed } from '#kube/http/access-review.ts';
import type { KubeApi } from '#kube/model/types.ts';
import { endpointSlices, nodes } from '#shared/domain/core-kinds.ts';
import type { KubeObject, ResourceType } from '#shared/domain/kube-object.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import { networkLabel, networkType } from '#shared/domain/network-keys.ts';
import type { PeeringPolicy } from '#shared/schema/isthmus/peering-policy.ts';
import type { Configuration } from '#shared/schema/liqo/configuration.ts';
import type { FirewallConfiguration } from '#shared/schema/liqo/firewall-configuration.ts';
import type { Ip } from '#shared/schema/liqo/ip.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import { hostAddresses as addressesOf, apiServerRanges, apiServers, nodeNetworksOf } from '../ranges/cluster-ipam.ts';
import { ruleNamePatch, validateFirewall } from './firewall-configuration.ts';
import { type Guarded, validateIp } from './ip.ts';
import { keepsSpec, validateConfiguration, validateGateway, validateNetwork } from './network-kinds.ts';
import { validateRoutes } from './route-configuration.ts';

/** Addresses of nodes, of what they ask and go through, of API servers, and every range that something in this cluster has, but for pods. */
async function guardedRanges(api: KubeApi, signal: AbortSignal): Promise<readonly Guarded[]> {
  const [hosts, internal, servers, networks] = await Promise.all([
    api.list(nodes, {}, signal),
    api.list(networkKinds.internalNodes, {}, signal),
    api.list(endpointSlices, apiServers, signal),
    api.list(networkKinds.networks, {}, signal),
  ]);
  const isOpen = (type: string | undefined): boolean => type === networkType.pod || type === networkType.reserved;
  return [
    ...hosts.flatMap((node) => addressesOf(node).map((range) => ({ range, what: `Node ${node.metadata.name}` }))),
    ...internal.flatMap((node) =>
      nodeNetworksOf(node)
        .filter((range) => range.endsWith('/32'))
        .map((range) => ({ range, what: `gateway or resolver of Node ${node.metadata.name}` })),
    ),
    ...apiServerRanges(servers).map((range) => ({ range, what: 'an API server' })),
    ...networks
      .filter(({ metadata }) => !isOpen(metadata.labels?.[networkLabel.networkType]))
      .flatMap(({ metadata, spec, status }) => ({
        range: status?.cidr ?? spec.cidr,
        what: `Network ${metadata.namespace}/${metadata.name}`,
      })),
  ];
}

function mayMakeIps(api: KubeApi, namespace: string, user: Review['user'], signal: AbortSignal): Promise<boolean> {
  const { group, plural: resource } = networkKinds.ips;
  const attributes = { verb: 'create', group, resource, namespace };
  return isAllowed(api, { user: user.name, groups: user.groups }, attributes, signal);
}

type Validate<T extends KubeObject> = (before: T | undefined, after: T, others: readonly T[]) => Verdict;

/** `policies`: the PeeringPolicies of this cluster as they are now. */
export function createNetworkHooks(
  api: KubeApi,
  systemNamespace: string,
  policies: () => readonly PeeringPolicy[],
): readonly (readonly [path: string, hook: Hook])[] {
  const among =
    <T extends KubeObject>(types: readonly ResourceType<T>[], validate: Validate<T>): Hook =>
    async ({ object, before }, signal) => {
      if (!object || keepsSpec(before, object)) return allow;
      const others = await Promise.all(types.map((type) => api.list(type, {}, signal)));
      return validate(before as T | undefined, object as T, others.flat());
    };
  /** Holds for every writer: brokers, liqoctl, peering users and manifests. */
  const underPolicy = ({ metadata }: KubeObject, ranges: readonly string[]): Verdict => {
    const peer = metadata.labels?.[label.remoteClusterId];
    const refusal = peer === undefined ? undefined : linkRefusal(policies(), peer, ranges);
    return refusal === undefined ? allow : deny('policy_refused', refusal);
  };
  const { gatewayServers, gatewayClients, networks, routeConfigurations, firewallConfigurations } = networkKinds;
  const validGateway = among<KubeObject>([gatewayServers, gatewayClients], validateGateway);
  return [
    [
      '/mutate/firewallconfigurations',
      ({ object }) => (object ? { allowed: true, patch: ruleNamePatch(object, randomUUID) } : allow),
    ],
    ['/validate/firewallconfigurations', among<FirewallConfiguration>([firewallConfigurations], validateFirewall)],
    ['/validate/routeconfigurations', among([routeConfigurations], validateRoutes)],
    [
      '/validate/configurations',
      ({ object, before }) => {
        if (!object || keepsSpec(before, object)) return allow;
        const configuration = object as Configuration;
        const verdict = validateConfiguration(before as Configuration | undefined, configuration);
        const { pod = [], external = [] } = configuration.spec.remote?.cidr ?? {};
        return verdict.allowed ? underPolicy(object, [...pod, ...external]) : verdict;
      },
    ],
    [
      '/validate/gateways',
      async (review, signal) => {
        const verdict = await validGateway(review, signal);
        const { object, before } = review;
        return !verdict.allowed || !object || keepsSpec(before, object) ? verdict : underPolicy(object, []);
      },
    ],
    ['/validate/networks', among([networks], validateNetwork)],
    [
      '/validate/ips',
      async (review, signal) => {
        const { object, before, namespace, user } = review as Review<Ip>;
        if (!object || keepsSpec(before, object) || namespace === systemNamespace) return allow;
        // First, since the agent itself makes one for each pod that is offloaded from here.
        if (await mayMakeIps(api, systemNamespace, user, signal)) return allow;
        return validateIp(object, await guardedRanges(api, signal));
      },
    ],
  ];
}
