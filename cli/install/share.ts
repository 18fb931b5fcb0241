/** What a cluster shares with peers, for `join` and `install` to say. */

import type { KubeClient } from '#cli/cluster/open.ts';
import { roundDown, shareOf } from '#shared/domain/capacity-share.ts';
import { nodes, pods } from '#shared/domain/core-kinds.ts';
import type { Node, Pod } from '#shared/domain/kube-object.ts';
import { label, managedByShadowPod } from '#shared/domain/liqo-keys.ts';
import { isKeptFree } from '#shared/domain/node-taints.ts';
import { ownMember } from '#shared/domain/own-member.ts';
import { type Amounts, addAmounts, amountsOf, podUsage, showAmount } from '#shared/domain/pod-resources.ts';
import type { Resources } from '#shared/domain/quantity.ts';
import { isVirtualNode } from '#shared/domain/virtual-nodes.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { defaultSharePercent, type PeeringPolicy, peeringPolicies } from '#shared/schema/isthmus/peering-policy.ts';
import { defaultPolicy } from './manifests.ts';

const shown = ['cpu', 'memory', 'pods'] as const;

const isReady = ({ status }: Node): boolean =>
  (status?.conditions ?? []).some(({ type, status: value }) => type === 'Ready' && value === 'True');

/** Of the nodes that take pods, less what pods that are no guests' request there. Pure. */
export function shareInWords(policy: PeeringPolicy, allNodes: readonly Node[], allPods: readonly Pod[]): string {
  const { name } = policy.metadata;
  const terms = policy.spec.asProvider;
  if (terms?.enabled !== true) return `shares nothing with peers (PeeringPolicy ${name})`;
  if (terms.elastic)
    return `shares with peers whatever they ask for, up to maxResourcesPerPeer (PeeringPolicy ${name})`;
  const ready = allNodes.filter(
    (node) => !isVirtualNode(node) && isReady(node) && !isKeptFree(node, terms.guests?.tolerations),
  );
  const names = new Set(ready.map(({ metadata }) => metadata.name));
  const isOwn = ({ metadata, spec, status }: Pod): boolean =>
    names.has(spec?.nodeName ?? '') &&
    metadata.labels?.[label.managedBy] !== managedByShadowPod &&
    status?.phase !== 'Succeeded' &&
    status?.phase !== 'Failed';
  const sum = (all: readonly Amounts[]): Amounts => all.reduce(addAmounts, {});
  const allocatable = sum(ready.map(({ status }) => amountsOf(status?.allocatable as Resources | undefined)));
  const own = sum(allPods.filter(isOwn).map(({ spec }) => podUsage(spec ?? { containers: [] })));
  const percent = terms.sharePercent ?? defaultSharePercent;
  const share = shareOf({ allocatable, own }, percent);
  const amounts = shown.map(
    (resource) => `${resource} ${showAmount(resource, roundDown(resource, ownMember(share, resource) ?? 0n))}`,
  );
  return `shares with peers ${percent} % of what its own pods leave free, now ${amounts.join(', ')} (PeeringPolicy ${name}, spec.asProvider.sharePercent)`;
}

/** Sets the percentage that was asked for, in the policy that joining makes. Undefined: there is no such policy, and nothing to say. */
export async function settleShare(kube: KubeClient, sharePercent: number | undefined): Promise<string | undefined> {
  const ref = { name: defaultPolicy };
  const find = () => kube.get(peeringPolicies, ref);
  const found = await find();
  if (found === undefined) return undefined;
  if (sharePercent !== undefined && found.spec.asProvider === undefined) {
    throw new AppError('invalid_input', `PeeringPolicy ${defaultPolicy} of this cluster gives no capacity to peers`, {
      detail: { field: 'share-percent', value: sharePercent, remedy: 'write spec.asProvider into it first' },
    });
  }
  const isOther = sharePercent !== undefined && found.spec.asProvider?.sharePercent !== sharePercent;
  if (isOther) await kube.mergePatch(peeringPolicies, ref, { spec: { asProvider: { sharePercent } } });
  const policy = isOther ? await find() : found;
  if (policy === undefined) return undefined;
  const [allNodes, allPods] = await Promise.all([kube.list(nodes), kube.list(pods)]);
  return shareInWords(policy, allNodes, allPods);
}
