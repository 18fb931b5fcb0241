/** How much of what a consumer asks the default class grants. Pure. */

import { policiesAbout } from '#agent/model/policies.ts';
import { shareOf } from '#shared/domain/capacity-share.ts';
import { noNodeReadyReason } from '#shared/domain/liqo-keys.ts';
import { ownMember } from '#shared/domain/own-member.ts';
import { amountsOf, showAmount } from '#shared/domain/pod-resources.ts';
import {
  addResources,
  compareQuantities,
  excessOver,
  parseResources,
  type Resources,
  subtractQuantities,
} from '#shared/domain/quantity.ts';
import { messageOf } from '#shared/errors/message-of.ts';
import { defaultSharePercent, type PeeringPolicy } from '#shared/schema/isthmus/peering-policy.ts';
import { portion, type Supply } from './share.ts';
import { isStorageResource, unofferedClass } from './storage-offer.ts';

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
  /** What this slice has now; absent: it was not accepted yet. */
  readonly current?: Resources | undefined;
  readonly capacity: Capacity;
  /** Names of the StorageClasses that this consumer may use. */
  readonly storageClasses: readonly string[];
  /** False: it shrank a moment ago. */
  readonly mayGrow: boolean;
}

interface Capacity extends Supply {
  /** Granted to slices of any consumer that are older than this one. */
  readonly older: Resources;
  /** Granted to all other slices. */
  readonly granted: Resources;
}

export type Grant =
  /** `less`: what of it is less than was wanted, in words; it changes only when the grant does. */
  | { readonly accepted: true; readonly resources: Record<string, string>; readonly less?: string }
  | { readonly accepted: false; readonly reason: string; readonly message: string };

/** The words for the built-in class. */
export const isDefaultClass = (className: string | undefined): boolean =>
  className === undefined || className === '' || className === 'default';

type ProviderTerms = NonNullable<PeeringPolicy['spec']['asProvider']>;

const denied = (reason: string, message: string): Grant => ({ accepted: false, reason, message });

/** The part of each policy that speaks about this consumer, by policy name. */
export function termsFor(policies: readonly PeeringPolicy[], consumer: string): (readonly [string, ProviderTerms])[] {
  return policiesAbout(policies, 'asProvider', consumer)
    .flatMap(({ metadata, spec }) => (spec.asProvider ? [[metadata.name, spec.asProvider] as const] : []))
    .sort(([a], [b]) => (a < b ? -1 : 1));
}

/** Keys of taints that the consumer's pods may tolerate; `*` ends a prefix. */
export const toleratedTaints = (policies: readonly PeeringPolicy[], consumer: string): readonly string[] =>
  termsFor(policies, consumer).find(([, { guests }]) => guests?.tolerations != null)?.[1].guests?.tolerations ?? [];

/** What a cluster without any PeeringPolicy offers: as a policy that says nothing else. */
const unsaid: ProviderTerms = {
  enabled: true,
  autoAccept: false,
  peers: ['*'],
  maxResourcesPerPeer: {},
  classes: ['default'],
  sharePercent: defaultSharePercent,
  elastic: false,
};

/**
 * Accepts when any one policy allows it, since policies add up. What a new slice asks for is granted in full or denied; what it left to the defaults
 * is cut to what there is. A slice that was accepted follows the share of this cluster: it gets less when less is free, and up to what it wants again.
 */
export function decideGrant(input: GrantInput): Grant {
  let asked: Record<string, string>;
  try {
    asked = parseResources(input.asked, 'spec.resources');
  } catch (error) {
    return denied('InvalidResources', messageOf(error));
  }
  const terms = input.policies.length === 0 ? [[undefined, unsaid] as const] : termsFor(input.policies, input.consumer);
  if (terms.length === 0) {
    return denied(
      'PolicyRefusesPeer',
      `no PeeringPolicy of this cluster has spec.asProvider enabled with ${input.consumer} or * among its peers; ask its administrator`,
    );
  }
  const unoffered = unofferedClass(asked, input.storageClasses);
  if (unoffered !== undefined) {
    return denied(
      'StorageClassNotOffered',
      `spec.resources names StorageClass ${unoffered}, which this provider does not offer to ${input.consumer}; offered are ${input.storageClasses.join(', ') || 'none'}`,
    );
  }
  const answers = terms.map(([name, of]) => underPolicy(name, of, asked, input));
  const accepted = answers.filter((answer) => answer.accepted).sort((a, b) => a.cut - b.cut);
  const best = accepted[0] ?? answers[0];
  if (!best?.accepted) return best as Grant;
  const { resources, less } = best;
  return { accepted: true, resources, ...(less !== undefined && { less }) };
}

type Answer =
  | { readonly accepted: true; resources: Record<string, string>; cut: number; less?: string }
  | (Grant & { accepted: false });

function underPolicy(
  name: string | undefined,
  terms: ProviderTerms,
  asked: Record<string, string>,
  input: GrantInput,
): Answer {
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
    Object.entries(addResources(asked, used)).filter(([resource]) => ownMember(asked, resource) !== undefined),
  );
  const excess = excessOver(total, terms.maxResourcesPerPeer);
  if (excess.length > 0) {
    const words = excess.map(({ resource, limit }) => {
      const before = ownMember(used, resource);
      const also = before === undefined ? '' : ` besides ${before} already granted to other slices`;
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
    if (ownMember(asked, resource) !== undefined) continue;
    const left = remaining(ownMember(terms.maxResourcesPerPeer, resource), ownMember(used, resource));
    const isCut = left !== undefined && compareQuantities(left, wanted) < 0;
    if (isCut) cut++;
    resources[resource] = isCut ? left : String(wanted);
  }
  // Claims are counted only where there is a limit: what the policy says of storage is granted, asked for or not.
  for (const [resource, limit] of Object.entries(terms.maxResourcesPerPeer)) {
    if (ownMember(asked, resource) === undefined && isStorageResource(resource))
      resources[resource] = remaining(limit, ownMember(used, resource)) ?? String(limit);
  }
  return withinShare(name, terms, { resources, cut }, input);
}

/** A node without any of these takes no pod. */
const essential: readonly string[] = ['cpu', 'memory', 'pods'];

/** Cuts the defaults, and what was accepted before, to what the cluster has left; refuses what a new slice asks for and is not there. */
function withinShare(
  name: string | undefined,
  { sharePercent = defaultSharePercent, elastic }: Partial<ProviderTerms>,
  wanted: { readonly resources: Record<string, string>; readonly cut: number },
  { asked, capacity, current, mayGrow }: GrantInput,
): Answer {
  if (elastic) return { accepted: true, ...wanted };
  const share = shareOf(capacity.ready, sharePercent);
  const lasting = shareOf(capacity.lasting, sharePercent);
  const ceiling = shareOf({ ...capacity.lasting, own: {} }, sharePercent);
  const now = amountsOf(current);
  const older = amountsOf(capacity.older);
  const granted = amountsOf(capacity.granted);
  const kept = { ...wanted.resources };
  const words: string[] = [];
  const less: string[] = [];
  for (const [resource, amount] of Object.entries(amountsOf(wanted.resources))) {
    // Nodes have none of it, so their share says nothing.
    if (isStorageResource(resource)) continue;
    const others = ownMember(granted, resource) ?? 0n;
    const gets = portion({
      resource,
      wanted: amount,
      current: ownMember(now, resource) ?? 0n,
      older: ownMember(older, resource) ?? 0n,
      others,
      share: ownMember(share, resource) ?? 0n,
      lasting: ownMember(lasting, resource) ?? 0n,
      ceiling: ownMember(ceiling, resource) ?? 0n,
      mayGrow: mayGrow || current === undefined,
    });
    if (gets === amount) continue;
    kept[resource] = showAmount(resource, gets);
    less.push(`${resource} ${kept[resource]} of ${wanted.resources[resource]}`);
    if (
      current !== undefined ||
      !(ownMember(asked, resource) !== undefined || (gets === 0n && essential.includes(resource)))
    )
      continue;
    const show = (of: bigint): string => showAmount(resource, of);
    const most = ownMember(share, resource) ?? 0n;
    const left = most > others ? most - others : 0n;
    const free = `${sharePercent} % of what the pods of this cluster leave of ${show(ownMember(capacity.ready.allocatable, resource) ?? 0n)}`;
    words.push(
      `${resource}: asked ${wanted.resources[resource]}, left ${show(left)} of ${show(most)} (${free}), granted to others ${show(others)}`,
    );
  }
  if (words.length === 0) {
    const cut = wanted.cut + less.length;
    return { accepted: true, resources: kept, cut, ...(less.length > 0 && { less: less.join(', ') }) };
  }
  const where = name === undefined ? '' : ` under PeeringPolicy ${name}`;
  if (Object.keys(capacity.ready.allocatable).length === 0) {
    const message = `this cluster has no Ready node for pods of guests${where} now; it looks again when one is`;
    return { accepted: false, reason: noNodeReadyReason, message };
  }
  return {
    accepted: false,
    reason: 'CapacityExceeded',
    message: `this cluster has not enough left${where}: ${words.join('; ')}`,
  };
}

/** Undefined: not limited. */
function remaining(limit: string | number | undefined, used: string | undefined): string | undefined {
  if (limit === undefined) return undefined;
  if (used === undefined) return String(limit);
  const left = subtractQuantities(limit, used);
  return compareQuantities(left, '0') < 0 ? '0' : left;
}
