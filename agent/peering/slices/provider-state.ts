/** What a provider says about the nodes behind a slice: how much they can take, how they are, and whether new pods are welcome. Pure. */
import type { Node } from '#shared/domain/kube-object.ts';
import { noNodeReadyReason } from '#shared/domain/liqo-keys.ts';
import { isKeptFree } from '#shared/domain/node-taints.ts';
import { type Amounts, addAmounts, amountsOf } from '#shared/domain/pod-resources.ts';
import type { Resources } from '#shared/domain/quantity.ts';
import type { ProviderCondition } from '#shared/schema/liqo/resource-slice.ts';
import type { Supply } from './share.ts';

const has = (node: Node, type: string): boolean =>
  node.status?.conditions?.some((condition) => condition.type === type && condition.status === 'True') ?? false;
/** A node that is lost for longer is not counted any more. */
const lostForMs = 5 * 60_000;

/** When the node stopped being ready; undefined when it is, or never was. */
function lostAtMs(node: Node): number | undefined {
  const ready = node.status?.conditions?.find(({ type }) => type === 'Ready');
  return ready === undefined || ready.status === 'True' ? undefined : Date.parse(ready.lastTransitionTime ?? '');
}

/**
 * What nodes can take, and what the cluster's own pods on them request. `tolerated`: keys of taints that the pods of this consumer may tolerate.
 * `lookAgainMs`: when that changes by time alone.
 */
export function supplyOf(
  nodes: readonly Node[],
  usage: (node: string) => Amounts,
  nowMs: number,
  tolerated: readonly string[] = [],
): Supply & { readonly lookAgainMs?: number } {
  const usable = nodes.filter((node) => !isKeptFree(node, tolerated));
  const lost = usable.flatMap((node) => {
    const left = (lostAtMs(node) ?? Number.NEGATIVE_INFINITY) + lostForMs - nowMs;
    return left > 0 ? [{ node, left }] : [];
  });
  const holding = (of: readonly Node[]) => ({
    allocatable: of.map((node) => amountsOf(node.status?.allocatable as Resources | undefined)).reduce(addAmounts, {}),
    own: of.map(({ metadata }) => usage(metadata.name)).reduce(addAmounts, {}),
  });
  const ready = usable.filter((node) => has(node, 'Ready'));
  return {
    ready: holding(ready),
    lasting: holding([...ready, ...lost.map(({ node }) => node)]),
    ...(lost.length > 0 && { lookAgainMs: Math.min(...lost.map(({ left }) => left)) }),
  };
}

const pressures = ['MemoryPressure', 'DiskPressure', 'PIDPressure'] as const;

/** Nothing about nodes where there are none (yet). */
export function providerConditions(
  nodes: readonly Node[],
  cordoned: string | undefined,
  tolerated: readonly string[] = [],
): ProviderCondition[] {
  const usable = nodes.filter((node) => !isKeptFree(node, tolerated));
  const ready = usable.filter((node) => has(node, 'Ready'));
  const conditions: ProviderCondition[] = [];
  if (nodes.length > 0) {
    conditions.push({
      type: 'Ready',
      status: usable.length > 0 && ready.length === 0 ? 'False' : 'True',
      reason: usable.length > 0 && ready.length === 0 ? noNodeReadyReason : 'NodesReady',
      message:
        usable.length > 0 && ready.length === 0
          ? `none of the ${usable.length} nodes of the provider is ready`
          : 'nodes of the provider are ready',
    });
  }
  // As long as one node is without, pods find a place.
  if (ready.length > 0) {
    for (const type of pressures) {
      const pressed = ready.every((node) => has(node, type));
      const reason = pressed ? 'NodesUnderPressure' : 'NodesWithoutPressure';
      const message = pressed
        ? `all ${ready.length} ready nodes of the provider have ${type}`
        : `nodes of the provider are without ${type}`;
      conditions.push({ type, status: pressed ? 'True' : 'False', reason, message });
    }
  }
  const message = cordoned ?? 'new pods are taken';
  conditions.push({
    type: 'Cordoned',
    status: cordoned === undefined ? 'False' : 'True',
    reason: cordoned === undefined ? 'NotCordoned' : 'Cordoned',
    message,
  });
  return conditions;
}
