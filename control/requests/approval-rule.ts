/** Rules by which a tenant's inbox approves by itself: by who asks, for which of the published clusters, how much and in which class. */
import { compareQuantities, parseResources } from '#shared/domain/quantity.ts';
import { checkLabels, hasLabels } from '../directory/entry.ts';
import { checkClasses, refuse } from '../invitations/invitation.ts';
import type { Resources } from '../peerings/peering.ts';

export interface NewApprovalRule {
  readonly name: string;
  /** Tenants that may ask; `*` for all. */
  readonly tenants: readonly string[];
  /** Labels that the published cluster has, as its directory entry says. Default: any cluster. */
  readonly labels?: Readonly<Record<string, string>>;
  /** Most that a request may ask for. A request that leaves one of these open asks for too much. */
  readonly maxResources?: Resources;
  /** Default `default`; `*` for all. */
  readonly classes?: readonly string[];
}

export interface ApprovalRule extends Required<NewApprovalRule> {
  readonly id: string;
  readonly createdAt: number;
  readonly createdBy: string;
}

const tenantName = /^(\*|[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)$/;

export function checkRule(input: NewApprovalRule): Required<NewApprovalRule> {
  const { name, tenants, labels = {}, maxResources = {}, classes = ['default'] } = input;
  if (name.length < 1 || name.length > 100) refuse('name', name, '1 to 100 characters');
  if (tenants.length < 1 || tenants.length > 100) refuse('tenants', tenants, '1 to 100 tenants, or *');
  for (const tenant of tenants) if (!tenantName.test(tenant)) refuse('tenants', tenant, 'names of tenants, or *');
  return {
    name,
    tenants: [...new Set(tenants)],
    labels: checkLabels(labels),
    maxResources: parseResources(maxResources, 'maxResources'),
    classes: checkClasses(classes),
  };
}

export interface RuleInput {
  readonly tenant: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly resources: Resources;
  readonly class: string;
}

const lists = (names: readonly string[], name: string): boolean => names.includes('*') || names.includes(name);

export function ruleAllows(rule: Required<NewApprovalRule>, asked: RuleInput): boolean {
  const { resources } = asked;
  return (
    lists(rule.tenants, asked.tenant) &&
    lists(rule.classes, asked.class) &&
    hasLabels(asked.labels, rule.labels) &&
    Object.entries(rule.maxResources).every(([name, most]) => {
      const wanted = Object.hasOwn(resources, name) ? resources[name] : undefined;
      return wanted !== undefined && compareQuantities(wanted, most) <= 0;
    })
  );
}
