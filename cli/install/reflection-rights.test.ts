/** What is reflected needs rights on both sides: the agent's in its own cluster, the consumer's in the namespaces that are mapped to it. */
import { expect, test } from 'vitest';
import { agentRole } from '#shared/domain/agent-roles.ts';
import { remoteRoles } from '#shared/domain/remote-roles.ts';
import { agentRules, namespaceRules } from './agent-rights.ts';

interface Rule {
  readonly apiGroups?: readonly string[];
  readonly resources?: readonly string[];
  readonly verbs: readonly string[];
}
const allows = (rules: readonly Rule[], group: string, resource: string, verb: string): boolean =>
  rules.some(
    ({ apiGroups = [], resources = [], verbs }) =>
      apiGroups.includes(group) && (resources.includes(resource) || resources.includes('*')) && verbs.includes(verb),
  );
const missing = (rules: readonly Rule[], needs: readonly (readonly [string, string, string])[]): string[] =>
  needs.flatMap(([group, resource, verbs]) =>
    verbs.split(' ').flatMap((verb) => (allows(rules, group, resource, verb) ? [] : [`${verb} ${resource}`])),
  );

const follow = 'list watch';
const write = 'get list watch create patch delete';

test('the agent may do in its own cluster what reflection needs, as consumer and as provider', () => {
  const needs = [
    ['', 'services', `get ${follow}`],
    ['', 'configmaps', `get ${follow}`],
    ['', 'secrets', `get ${follow}`],
    ['networking.k8s.io', 'ingresses', follow],
    ['', 'events', 'list watch create patch delete'],
    ['', 'serviceaccounts/token', 'create'],
    ['', 'persistentvolumeclaims', follow],
    ['', 'persistentvolumeclaims/status', 'patch'],
    ['offloading.liqo.io', 'vkoptionstemplates', follow],
    ['ipam.liqo.io', 'ips', follow],
    ['networking.liqo.io', 'configurations', follow],
    ['discovery.k8s.io', 'endpointslices', write],
    ['offloading.liqo.io', 'shadowendpointslices', follow],
    ['core.liqo.io', 'foreignclusters', follow],
  ] as const;
  expect(missing([...agentRules([]), ...namespaceRules[agentRole.offloaded]], needs)).toEqual([]);
});

test('the agent may name owners whose deletion its objects block, where the API server asks for that right', () => {
  const owners = [
    ['offloading.liqo.io', 'shadowpods/finalizers', 'update'],
    ['offloading.liqo.io', 'shadowendpointslices/finalizers', 'update'],
  ] as const;
  expect(missing(agentRules([]), owners)).toEqual([]);
});

test('in namespaces where it does not work the agent makes no pods and no tokens, and reads no configuration', () => {
  const everywhere = agentRules([]);
  const denied = [
    ['', 'serviceaccounts/token', 'create'],
    ['', 'pods', 'create'],
    ['', 'pods/ephemeralcontainers', 'patch'],
    ['apps', 'deployments', 'create patch update delete'],
    ['', 'configmaps', 'get list watch create'],
    ['coordination.k8s.io', 'leases', 'get create update'],
  ] as const;
  expect(missing(everywhere, denied)).toHaveLength(14);
  // What administrators say: which peers are let in, what they may have, and what gateways are made of.
  const said = [
    ['isthmus.dev', 'peeringpolicies', 'create patch update delete'],
    ['isthmus.dev', 'peeringlocks', 'create patch update delete'],
    ['isthmus.dev', 'peerings', 'create patch update delete'],
    ['networking.liqo.io', 'wggatewayservertemplates', 'create patch update delete'],
    ['networking.liqo.io', 'firewallconfigurations', 'create patch update delete'],
    ['rbac.authorization.k8s.io', 'clusterroles', 'create patch update delete'],
  ] as const;
  expect(missing(everywhere, said)).toHaveLength(24);
  const webhooks = everywhere.filter(({ resources = [] }) => resources.includes('validatingwebhookconfigurations'));
  for (const { verbs, resourceNames } of webhooks)
    if (verbs.some((verb) => ['delete', 'patch', 'update'].includes(verb)))
      expect(resourceNames).toEqual(['isthmus-webhook']);
});

test('a consumer may write in its namespaces what it reflects, and neither Pods, nor EndpointSlices, nor Events', () => {
  const rules = remoteRoles().find(({ metadata }) => metadata.name === 'liqo-virtual-kubelet-remote')?.rules ?? [];
  const needs = [
    ['', 'services', write],
    ['', 'configmaps', write],
    ['', 'secrets', write],
    ['networking.k8s.io', 'ingresses', write],
    ['offloading.liqo.io', 'shadowendpointslices', write],
    ['', 'events', follow],
  ] as const;
  expect(missing(rules, needs)).toEqual([]);
  const denied = [
    ['', 'pods', 'create'],
    ['discovery.k8s.io', 'endpointslices', 'create'],
    ['', 'events', 'create'],
  ] as const;
  expect(missing(rules, denied)).toEqual(['create pods', 'create endpointslices', 'create events']);
});

test('the agent may read each object of a kind that the broker applies, by itself: it looks whose object it is before it takes it away', () => {
  const kinds = [
    ['authentication.liqo.io', 'tenants', 'get'],
    ['authentication.liqo.io', 'identities', 'get'],
    ['authentication.liqo.io', 'resourceslices', 'get'],
    ['offloading.liqo.io', 'namespacemaps', 'get'],
    ['networking.liqo.io', 'configurations', 'get'],
    ['networking.liqo.io', 'gatewayservers', 'get'],
    ['networking.liqo.io', 'gatewayclients', 'get'],
    ['networking.liqo.io', 'publickeies', 'get'],
    ['networking.liqo.io', 'connections', 'get'],
  ] as const;
  expect(missing(agentRules([]), kinds)).toEqual([]);
});
