/** Where the work of nodes is done: in processes of their own, or, on a cluster of one node, beside the controllers. */
import type { KubeClient } from '#cli/cluster/open.ts';
import { nodes } from '#shared/domain/core-kinds.ts';
import { type NodeProcess, nodeProcess, nodeProcessLabel } from '#shared/domain/network-keys.ts';
import { AppError } from '#shared/errors/app-error.ts';

export interface NodeProcessFacts {
  /** Names of the nodes that are not virtual. */
  readonly nodes: readonly string[];
  /** Replicas that were asked for. */
  readonly replicas?: number | undefined;
  readonly hasNetwork: boolean;
  /** As it is now. */
  readonly installed?: NodeProcess | undefined;
}

/** Pure. What is installed stays, if it can. Fails with `invalid_input` for what does not go together. */
export function settleNodeProcess(requested: NodeProcess | undefined, facts: NodeProcessFacts): NodeProcess {
  const { nodes: names, replicas = 1, hasNetwork, installed = nodeProcess.shared } = facts;
  const isSmall = names.length === 1 && replicas === 1 && hasNetwork;
  if (requested !== nodeProcess.shared || isSmall) return requested ?? (isSmall ? installed : nodeProcess.own);
  const why = !hasNetwork
    ? 'with --no-network there is none'
    : replicas > 1
      ? `--replicas is ${replicas}, and the node's work is done once`
      : `the cluster has ${names.length} nodes`;
  throw new AppError('invalid_input', `--node-process is shared, but ${why}`, {
    detail: {
      field: 'node-process',
      value: requested,
      accepted: `${nodeProcess.own}; ${nodeProcess.shared} on a cluster of one node with one replica and a network`,
    },
  });
}

/** Before the DaemonSet is there, or it would start a process that has to end at once. From then on the agent keeps the mark. */
export const markServed = (kube: KubeClient, node: string): Promise<void> =>
  kube.mergePatch(nodes, { name: node }, { metadata: { labels: { [nodeProcessLabel]: nodeProcess.shared } } });
