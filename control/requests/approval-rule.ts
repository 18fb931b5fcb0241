/** Rules by which a tenant's inbox approves by itself: by the asking tenant, the published cluster, the amount and the class. */
import { ownMember } from '#shared/domain/own-member.ts';
import { compareQuantities, parseResources } from '#shared/domain/quantity.ts';
import { checkClasses, refuse, wholeBetween } from '../input/checks.ts';
import { checkLabels, hasLabels } from '../input/labels.ts';
import type { Resources } from '../model/peering.ts';

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
  /** How many requests it approves; default 100. */
  readonly uses?: number;
}

export interface ApprovalRule extends Required<NewApprovalRule> {
  readonly id: string;
  /** How many it has approved. */
  readonly used: number;
  readonly createdAt: number;
  readonly createdBy: string;
}

const maxUses = 10_000;
const tenantName = /^(\*|[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)$/;

export function checkRule(input: NewApprovalRule): Required<NewApprovalRule> {
  const { name, tenants, labels = {}, maxResources = {}, classes = ['default'], uses = 100 } = input;
  if (name.length < 1 || name.length > 100) refuse('name', name, '1 to 100 characters');
  if (tenants.length < 1 || tenants.length > 50) refuse('tenants', tenants, '1 to 50 tenants, or *');
  if (!wholeBetween(uses, 1, maxUses)) refuse('uses', uses, `1 to ${maxUses}`);
  for (const tenant of tenants) if (!tenantName.test(tenant)) refuse('tenants', tenant, 'names of tenants, or *');
  return {
    name,
    tenants: [...new Set(tenants)],
    labels: checkLabels(labels),
    maxResources: parseResources(maxResources, 'maxResources'),
    classes: checkClasses(classes),
    uses,
  };
}

export interface RuleInput {
  readonly tenant: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly resources: Resources;
  readonly class: string;
}

const lists = (names: readonly string[], name: string): boolean => names.includes('*') || names.includes(name);

export function ruleAllows(rule: Required<NewApprovalRule>, requested: RuleInput): boolean {
  const { resources } = requested;
  return (
    lists(rule.tenants, requested.tenant) &&
    lists(rule.classes, requested.class) &&
    hasLabels(requested.labels, rule.labels) &&
    Object.entries(rule.maxResources).every(([name, most]) => {
      const wanted = ownMember(resources, name);
      return wanted !== undefined && compareQuantities(wanted, most) <= 0;
    })
  );
}
