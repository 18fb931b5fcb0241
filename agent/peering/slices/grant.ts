/** How much of what a consumer asks the default class grants. Pure. */

import { showAmount } from '#shared/domain/pod-resources.ts';
import {
  addResources,
  compareQuantities,
  excessOver,
  parseQuantity,
  parseResources,
  type Resources,
  subtractQuantities,
} from '#shared/domain/quantity.ts';
import { messageOf } from '#shared/errors/message-of.ts';
import type { PeeringPolicy } from '#shared/schema/isthmus/peering-policy.ts';

/** Granted of what a slice does not mention, as in Liqo. */
export const defaultNodeResources: Resources = { cpu: '4', memory: '8Gi', pods: '110', 'ephemeral-storage': '20Gi' };

export interface GrantInput {
  readonly consumer: string;
  readonly className: string;
  readonly asked: Resources;
  readonly defaults: Resources;
  /** What the other slices of this consumer were granted. */
  readonly others: readonly Resources[];
  readonly policies: readonly PeeringPolicy[];
  /** What this slice was granted before: it keeps that, even when the capacity has shrunk. */
  readonly current?: Resources;
  /** Absent: not known, and not looked at. */
  readonly capacity?: Capacity;
}

interface Capacity {
  /** Of all nodes together. */
  readonly allocatable: Resources;
  /** Granted to all other slices of all consumers. */
  readonly granted: Resources;
}

export type Grant =
  | { readonly accepted: true; readonly resources: Record<string, string> }
  | { readonly accepted: false; readonly reason: string; readonly message: string };

/** The words for the built-in class. */
export const isDefaultClass = (className: string | undefined): boolean =>
  className === undefined || className === '' || className === 'default';

type ProviderTerms = NonNullable<PeeringPolicy['spec']['asProvider']>;

const denied = (reason: string, message: string): Grant => ({ accepted: false, reason, message });

/** The part of each policy that speaks about this consumer, by policy name. */
export function termsFor(policies: readonly PeeringPolicy[], consumer: string): (readonly [string, ProviderTerms])[] {
  return policies
    .flatMap((policy) => {
      const terms = policy.spec.asProvider;
      const speaks = terms?.enabled === true && terms.peers.some((peer) => peer === '*' || peer === consumer);
      return speaks ? [[policy.metadata.name, terms] as const] : [];
    })
    .sort(([a], [b]) => (a < b ? -1 : 1));
}

/**
 * Accepts when any one policy allows it, since policies add up. A cluster without any PeeringPolicy never said what it wants, and grants as
 * Liqo does. What the consumer asked for is granted in full or denied; what it left to the defaults is cut to the limit.
 */
export function decideGrant(input: GrantInput): Grant {
  let asked: Record<string, string>;
  try {
    asked = parseResources(input.asked, 'spec.resources');
  } catch (error) {
    return denied('InvalidResources', messageOf(error));
  }
  if (input.policies.length === 0)
    return { accepted: true, resources: { ...parseResources(input.defaults), ...asked } };
  const terms = termsFor(input.policies, input.consumer);
  if (terms.length === 0) {
    return denied(
      'PolicyRefusesPeer',
      `no PeeringPolicy of this cluster has spec.asProvider enabled with ${input.consumer} or * among its peers; ask its administrator`,
    );
  }
  const answers = terms.map(([name, of]) => underPolicy(name, of, asked, input));
  const accepted = answers.filter((answer) => answer.accepted).sort((a, b) => a.cut - b.cut);
  const best = accepted[0] ?? answers[0];
  return best?.accepted ? { accepted: true, resources: best.resources } : (best as Grant);
}

type Answer =
  | { readonly accepted: true; resources: Record<string, string>; cut: number }
  | (Grant & { accepted: false });

function underPolicy(name: string, terms: ProviderTerms, asked: Record<string, string>, input: GrantInput): Answer {
  const className = isDefaultClass(input.className) ? 'default' : input.className;
  if (!terms.classes.includes(className)) {
    return {
      accepted: false,
      reason: 'PolicyRefusesClass',
      message: `PeeringPolicy ${name} does not offer class "${className}"; accepted: ${terms.classes.join(', ') || 'none'}`,
    };
  }
  const used = input.others.reduce<Record<string, string>>((sum, one) => addResources(sum, one), {});
  const total = Object.fromEntries(
    Object.entries(addResources(asked, used)).filter(([resource]) => asked[resource] !== undefined),
  );
  const excess = excessOver(total, terms.maxResourcesPerPeer);
  if (excess.length > 0) {
    const words = excess.map(({ resource, limit }) => {
      const also = used[resource] === undefined ? '' : ` besides ${used[resource]} already granted to other slices`;
      return `${resource}: asked ${asked[resource]}${also}, limit ${limit}`;
    });
    return {
      accepted: false,
      reason: 'PolicyLimitExceeded',
      message: `PeeringPolicy ${name} limits what ${input.consumer} may get: ${words.join('; ')}`,
    };
  }
  let cut = 0;
  const resources = { ...asked };
  for (const [resource, wanted] of Object.entries(input.defaults)) {
    if (asked[resource] !== undefined) continue;
    const left = remaining(terms.maxResourcesPerPeer[resource], used[resource]);
    const isCut = left !== undefined && compareQuantities(left, wanted) < 0;
    if (isCut) cut++;
    resources[resource] = isCut ? left : String(wanted);
  }
  return withinCapacity(name, terms, { resources, cut }, input);
}

/** Cuts the defaults to what the cluster has left; refuses what was asked for and is not there. */
function withinCapacity(
  name: string,
  { overcommitPercent }: ProviderTerms,
  { resources, cut }: { readonly resources: Record<string, string>; readonly cut: number },
  { asked, capacity, current = {} }: GrantInput,
): Answer {
  if (overcommitPercent === undefined || capacity === undefined) return { accepted: true, resources, cut };
  const kept = { ...resources };
  const words: string[] = [];
  let cuts = cut;
  for (const [resource, wanted] of Object.entries(resources)) {
    const before = current[resource];
    if (before !== undefined && compareQuantities(wanted, before) <= 0) continue;
    const most = percentOf(capacity.allocatable[resource] ?? '0', overcommitPercent, resource);
    const left = remaining(most, String(capacity.granted[resource] ?? '0')) ?? '0';
    if (compareQuantities(wanted, left) <= 0) continue;
    if (asked[resource] === undefined) {
      kept[resource] = left;
      cuts++;
    } else {
      words.push(
        `${resource}: asked ${wanted}, left ${left} of ${most} (${overcommitPercent} % of ${capacity.allocatable[resource] ?? 0} allocatable), granted to others ${capacity.granted[resource] ?? 0}`,
      );
    }
  }
  if (words.length === 0) return { accepted: true, resources: kept, cut: cuts };
  const message = `this cluster has not enough left under PeeringPolicy ${name}: ${words.join('; ')}`;
  return { accepted: false, reason: 'CapacityExceeded', message };
}

/** Rounded down to what can be written: thousandths, and whole pods and bytes. */
function percentOf(quantity: string | number, percent: number, resource: string): string {
  const step = resource === 'cpu' ? 1_000_000n : 1_000_000_000n;
  const share = (parseQuantity(quantity) * BigInt(percent)) / 100n;
  return showAmount(resource, (share / step) * step);
}

/** Undefined: not limited. */
function remaining(limit: string | number | undefined, used: string | undefined): string | undefined {
  if (limit === undefined) return undefined;
  if (used === undefined) return String(limit);
  const left = subtractQuantities(limit, used);
  return compareQuantities(left, '0') < 0 ? '0' : left;
}
