/** The two conditions of a VirtualNode, from what its kubelet has reached. Pure. */
import type { VirtualNode, VirtualNodeCondition } from '#shared/schema/liqo/virtual-node.ts';
import type { RetirePlan } from '../node-removal/plan.ts';
import type { KubeletState } from './virtual-kubelet.ts';

export type ConditionInput = Pick<VirtualNodeCondition, 'type' | 'status' | 'reason' | 'message'>;

export function kubeletCondition(virtualNode: VirtualNode, state: KubeletState): ConditionInput {
  const type = 'VirtualKubelet';
  const { metadata, spec } = virtualNode;
  if (state.connected) return { type, status: 'Running', reason: 'Connected', message: 'connected to the provider' };
  if (!state.hasIdentity) {
    const name = spec.kubeconfigSecretRef?.name;
    const message =
      name === undefined
        ? 'spec.kubeconfigSecretRef names no Secret; set it to one whose key kubeconfig reaches the provider'
        : `waiting for key kubeconfig of Secret ${metadata.namespace}/${name}`;
    return { type, status: 'Creating', reason: 'WaitingForIdentity', message };
  }
  const message = `the API server of provider ${spec.clusterID} does not answer: ${state.problem ?? 'connecting'}`;
  return { type, status: 'Creating', reason: 'ProviderUnreachable', message };
}

export function nodeCondition({ metadata }: VirtualNode, state: KubeletState): ConditionInput {
  const type = 'Node';
  if (state.node === 'taken') {
    const message = `a Node named ${metadata.name} exists that is not this virtual node; remove it, or give the VirtualNode another name`;
    return { type, status: 'Creating', reason: 'NameTaken', message };
  }
  if (state.nodeReady) return { type, status: 'Running', reason: 'NodeReady', message: 'the Node is Ready' };
  const message = state.connected
    ? `waiting for Node ${metadata.name} to be Ready; kubectl describe node ${metadata.name} says why`
    : 'the Node is not kept while the provider does not answer';
  return { type, status: 'Creating', reason: 'NodeNotReady', message };
}

export const retiringConditions = (plan: RetirePlan, virtualNode: VirtualNode): readonly ConditionInput[] => [
  { type: 'Node', status: plan.phase, reason: plan.phase, message: plan.message },
  ...(virtualNode.metadata.deletionTimestamp === undefined
    ? []
    : [
        {
          type: 'VirtualKubelet',
          status: 'Deleting',
          reason: 'Deleting',
          message: 'the VirtualNode is being deleted',
        } as const,
      ]),
];

/** Undefined when nothing differs. A condition keeps its time while its status stays. */
export function mergedConditions(
  { status }: VirtualNode,
  inputs: readonly ConditionInput[],
  now: string,
): readonly VirtualNodeCondition[] | undefined {
  const known = status?.conditions ?? [];
  const next = inputs.map((input): VirtualNodeCondition => {
    const before = known.find(({ type }) => type === input.type);
    const lastTransitionTime = before?.status === input.status ? (before.lastTransitionTime ?? now) : now;
    return { ...input, lastTransitionTime };
  });
  const kept = known.filter(
    ({ type }, index) => !next.some((c) => c.type === type) && known.findIndex((c) => c.type === type) === index,
  );
  const merged = [...kept, ...next].sort((a, b) => b.type.localeCompare(a.type));
  const same =
    merged.length === known.length &&
    merged.every((condition) => {
      const before = known.find(({ type }) => type === condition.type);
      return (
        before?.status === condition.status &&
        before.reason === condition.reason &&
        before.message === condition.message
      );
    });
  return same ? undefined : merged;
}
