/** networking.liqo.io FirewallConfiguration: nftables rules that nodes or gateways, picked by labels, add to their own. */
import * as z from 'zod';
import type { KubeResource } from '#shared/domain/kube-object.ts';
import { ObjectReference } from '../definition/fields.ts';
import { ageColumn, cel, defineKind } from '../definition/kind.ts';
import { HostConditions } from './host-conditions.ts';
import { networkNames } from './network-names.ts';

export const FirewallMatch = z.object({
  op: z.enum(['eq', 'neq']),
  ip: z
    .object({ value: z.string().describe('Address, CIDR or `first-last`.'), position: z.enum(['src', 'dst']) })
    .optional(),
  port: z.object({ value: z.string().describe('Port or `first-last`.'), position: z.enum(['src', 'dst']) }).optional(),
  proto: z.object({ value: z.enum(['tcp', 'udp']) }).optional(),
  dev: z.object({ value: z.string().describe('Interface name.'), position: z.enum(['in', 'out']) }).optional(),
});
export type FirewallMatch = z.infer<typeof FirewallMatch>;

const ruleName = z.string().optional().describe('Identity of the rule in its chain; filled in when absent.');

export const NatRule = z.object({
  name: ruleName,
  match: z.array(FirewallMatch).describe('All of them must hold.'),
  natType: z.enum(['dnat', 'snat', 'masquerade']),
  to: z.string().optional().describe('Address, or CIDR for 1:1 translation that keeps host bits. Not for masquerade.'),
  targetRef: ObjectReference.optional().describe('What the rule is about; for people.'),
});
export type NatRule = z.infer<typeof NatRule>;

export const FilterRule = z.object({
  name: ruleName,
  match: z.array(FirewallMatch).default([]).describe('All of them must hold.'),
  action: z.enum(['ctmark', 'metamarkfromctmark', 'tcpmssclamp', 'accept', 'drop', 'reject', 'notrack']),
  value: z.string().optional().describe('Mark, or segment size in bytes; 0: by the MTU of the route.'),
  counter: z.boolean().default(true),
});
export type FilterRule = z.infer<typeof FilterRule>;

const RouteChainRule = z.object({ name: ruleName });

const lists = ['natRules', 'filterRules', 'routeRules'] as const;
const oneList = 'at most one of natRules, filterRules and routeRules may be given';

const FirewallRules = z
  .object({
    natRules: z.array(NatRule).optional(),
    filterRules: z.array(FilterRule).optional(),
    routeRules: z.array(RouteChainRule).optional().describe('Accepted, without effect.'),
  })
  .refine((rules) => lists.filter((list) => rules[list] !== undefined).length <= 1, oneList)
  .meta(
    cel({
      rule: '(has(self.natRules) ? 1 : 0) + (has(self.filterRules) ? 1 : 0) + (has(self.routeRules) ? 1 : 0) <= 1',
      message: oneList,
    }),
  );

export const FirewallChain = z.object({
  name: z.string().min(1),
  type: z.enum(['filter', 'route', 'nat']),
  policy: z.enum(['drop', 'accept']),
  hook: z.enum(['prerouting', 'input', 'forward', 'output', 'postrouting', 'ingress']),
  priority: z
    .int32()
    .default(0)
    .describe('raw -300, conntrack -200, mangle -150, dstnat -100, filter 0, security 50, srcnat 100.'),
  rules: FirewallRules,
});
export type FirewallChain = z.infer<typeof FirewallChain>;

export const FirewallTable = z.object({
  name: z.string().min(1),
  family: z.enum(['INET', 'IPV4', 'IPV6', 'ARP', 'NETDEV', 'BRIDGE']),
  // Without a bound the API server finds the rule above too expensive.
  chains: z.array(FirewallChain).max(256).default([]),
});
export type FirewallTable = z.infer<typeof FirewallTable>;

const FirewallConfigurationSpec = z.object({ table: FirewallTable.describe('One nftables table.') });
type FirewallConfigurationSpec = z.infer<typeof FirewallConfigurationSpec>;

const FirewallConfigurationStatus = z.object({ conditions: HostConditions.optional() });
type FirewallConfigurationStatus = z.infer<typeof FirewallConfigurationStatus>;

export type FirewallConfiguration = KubeResource<FirewallConfigurationSpec, FirewallConfigurationStatus>;

export const firewallConfigurations = defineKind<FirewallConfiguration>({
  ...networkNames.firewallConfigurations,
  shortNames: ['fw', 'fwconfig', 'fwcfg'],
  categories: ['liqo'],
  description: 'nftables rules that nodes or gateways, picked by its labels, add to their own.',
  writers: { object: 'a user; the webhook names unnamed rules', status: 'node processes' },
  columns: [ageColumn],
  spec: FirewallConfigurationSpec,
  status: FirewallConfigurationStatus,
});
