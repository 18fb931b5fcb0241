/** What a provider says about the nodes behind a slice: how much they can take, how they are, and whether new pods are welcome. Pure. */
import type { Node } from '#shared/domain/kube-object.ts';
import { addResources, resourceTexts } from '#shared/domain/quantity.ts';
import type { ProviderCondition } from '#shared/schema/liqo/resource-slice.ts';

const has = (node: Node, type: string): boolean =>
  node.status?.conditions?.some((condition) => condition.type === type && condition.status === 'True') ?? false;
const takesPods = (node: Node): boolean => node.spec?.unschedulable !== true;

/** Sum over the nodes that are Ready and take pods. */
export const allocatableOf = (nodes: readonly Node[]): Record<string, string> =>
  nodes
    .filter((node) => takesPods(node) && has(node, 'Ready'))
    .map((node) => resourceTexts(node.status?.allocatable as Record<string, string> | undefined))
    .reduce((sum, one) => addResources(sum, one), {});

const pressures = ['MemoryPressure', 'DiskPressure', 'PIDPressure'] as const;

/** Nothing about nodes where there are none (yet). */
export function providerConditions(nodes: readonly Node[], cordoned: string | undefined): ProviderCondition[] {
  const usable = nodes.filter(takesPods);
  const ready = usable.filter((node) => has(node, 'Ready'));
  const conditions: ProviderCondition[] = [];
  if (nodes.length > 0) {
    conditions.push({
      type: 'Ready',
      status: usable.length > 0 && ready.length === 0 ? 'False' : 'True',
      reason: usable.length > 0 && ready.length === 0 ? 'NoNodeReady' : 'NodesReady',
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
