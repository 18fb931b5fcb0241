/**
 * Emptying nodes of pods that a tightened policy no longer allows there (opt-in, by annotation). Mappings that would go are held meanwhile:
 * without them the pods would be aborted instead of being moved within their disruption budgets.
 */
import type { KubeApi } from '#kube/model/types.ts';
import { pods } from '#shared/domain/core-kinds.ts';
import type { Pod } from '#shared/domain/kube-object.ts';
import { isthmusAnnotation } from '#shared/domain/liqo-keys.ts';
import { type NodeFacts, selectsCluster } from '#shared/domain/node-selector.ts';
import type { NamespaceOffloading } from '#shared/schema/liqo/namespace-offloading.ts';
import { perform } from '../node-removal/perform.ts';
import type { Decision, Observed } from './decide.ts';

export const wantsDrain = ({ metadata }: NamespaceOffloading): boolean =>
  metadata.annotations?.[isthmusAnnotation.drainOnPolicyChange] === 'true';

/** Is anything about to change that could leave pods where they may not be? Only then are pods listed. */
export const isTightening = ({ offloading }: Observed, decision: Decision): boolean =>
  decision.finalizer !== 'remove' &&
  (decision.mappings.some(({ remote }) => remote === null) ||
    offloading.metadata.generation !== offloading.status?.observedGeneration);

export interface DrainPlan {
  readonly evict: readonly Pod[];
  /** IDs of providers on whose virtual nodes such pods still are. */
  readonly occupied: ReadonlySet<string>;
  /** Includes those that are ending. */
  readonly left: number;
}

const ownRuntimeClass = 'liqo';
const mirror = 'kubernetes.io/config.mirror';

/** Pods of DaemonSets and static pods belong to their node under any policy. */
const belongsToItsNode = ({ metadata }: Pod): boolean =>
  metadata.annotations?.[mirror] !== undefined ||
  (metadata.ownerReferences?.some(({ kind, controller }) => kind === 'DaemonSet' && controller) ?? false);

const isOver = ({ status }: Pod): boolean => status?.phase === 'Succeeded' || status?.phase === 'Failed';

/** `virtual`: undefined for a pod on a node that is not virtual. */
function isAllowed(pod: Pod, virtual: NodeFacts | undefined, { metadata, spec }: NamespaceOffloading): boolean {
  if (virtual && metadata.deletionTimestamp) return false;
  if (!virtual) return spec.podOffloadingStrategy !== 'Remote';
  // A pod with this runtime class chose virtual nodes for itself; the selector binds it all the same.
  if (spec.podOffloadingStrategy === 'Local' && pod.spec?.runtimeClassName !== ownRuntimeClass) return false;
  return selectsCluster(virtual, spec.clusterSelector);
}

/** Pure. `all`: the pods of the namespace. Those at a provider that was declared dead are not waited for. */
export function planDrain({ offloading, providers }: Observed, all: readonly Pod[]): DrainPlan {
  const virtual = new Map(
    providers.flatMap(({ id, dead, nodes }) => nodes.map((node) => [node.name, { id, dead, node }])),
  );
  const evict: Pod[] = [];
  const occupied = new Set<string>();
  let left = 0;
  for (const pod of all) {
    const nodeName = pod.spec?.nodeName;
    if (!nodeName || isOver(pod) || belongsToItsNode(pod)) continue;
    const on = virtual.get(nodeName);
    if (on?.dead || isAllowed(pod, on?.node, offloading)) continue;
    left++;
    if (on) occupied.add(on.id);
    if (pod.metadata.deletionTimestamp === undefined) evict.push(pod);
  }
  return { evict, occupied, left };
}

/** Pure. Nothing that is in use is taken away, and the change does not count as observed before the last pod has gone. */
export function held(decision: Decision, { offloading, providers }: Observed, { occupied, left }: DrainPlan): Decision {
  const maps = new Set(
    providers.flatMap(({ id, map }) => (occupied.has(id) && map ? [`${map.ref.namespace}/${map.ref.name}`] : [])),
  );
  const { observedGeneration: _, ...status } = decision.status;
  const before = offloading.status?.observedGeneration;
  return {
    ...decision,
    mappings: decision.mappings.filter(
      ({ map, remote }) => remote !== null || !maps.has(`${map.namespace}/${map.name}`),
    ),
    ...(left > 0 && { status: { ...status, ...(before !== undefined && { observedGeneration: before }) } }),
  };
}

/** Asks for evictions; returns why the first refused pod cannot be evicted, undefined when none is refused. */
export async function evictAll({ evict }: DrainPlan, api: KubeApi, signal: AbortSignal): Promise<string | undefined> {
  const blocked = new Map<string, string>();
  await perform(
    evict.map((pod) => ({ do: 'evict', pod })),
    blocked,
    api,
    signal,
  );
  const [first] = blocked;
  return first && `${blocked.size} of ${evict.length} pods cannot be evicted yet; ${first[0]}: ${first[1]}`;
}

export const listPods = (api: KubeApi, namespace: string, signal: AbortSignal): Promise<readonly Pod[]> =>
  api.list(pods, { namespace }, signal);
