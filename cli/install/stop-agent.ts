/**
 * Ends the agent's processes in a cluster. Node processes first: as they end they ask whether their DaemonSet is gone, and then sweep the kernel;
 * the controllers may be one of them. Processes that have already ended are no error.
 */
import type { KubeClient } from '#cli/cluster/open.ts';
import { poll } from '#cli/cluster/poll.ts';
import type { CliIo } from '#cli/output/io.ts';
import type { Step } from '#cli/output/progress.ts';
import { daemonSets, deployments, pods } from '#shared/domain/core-kinds.ts';
import type { KubeObject } from '#shared/domain/kube-object.ts';
import { systemNamespace } from '#shared/domain/liqo-keys.ts';
import { fabricName } from '#shared/domain/network-keys.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { fabricLabels } from './fabric-manifests.ts';
import { agentName, controllerLabels } from './manifests.ts';

const selectorOf = (labels: Readonly<Record<string, string>>): string =>
  Object.entries(labels)
    .map(([key, value]) => `${key}=${value}`)
    .join(',');

/** `deadline` by the clock of `io`. Fails with `deadline_exceeded` that names the pods that are left and their nodes. */
export async function stopAgent(io: CliIo, kube: KubeClient, deadline: number, step: Step): Promise<void> {
  await kube.delete(daemonSets, { namespace: systemNamespace, name: fabricName });
  await gone('node processes', fabricLabels);
  await kube.delete(deployments, { namespace: systemNamespace, name: agentName });
  await gone('agent', controllerLabels);

  async function gone(what: string, labels: Readonly<Record<string, string>>): Promise<void> {
    const selector = selectorOf(labels);
    let left: string[] = [];
    await poll(
      io,
      deadline - io.clock.now(),
      async () => {
        const running = await kube.list<KubeObject & { spec?: { nodeName?: string } }>(pods, selector, systemNamespace);
        left = running.map(({ metadata, spec }) => `${metadata.name} on ${spec?.nodeName ?? 'no node'}`);
        step.update(`${what}: ${left.length === 0 ? 'ended' : `waiting for ${left.join(', ')} to end`}`);
        return left.length === 0 ? true : undefined;
      },
      () =>
        new AppError('deadline_exceeded', `the pods of the ${what} do not end: ${left.join(', ')}`, {
          detail: {
            remedy: `look at these nodes; where one is gone for good, \`kubectl delete node NODE\`; then repeat, with a longer --timeout if the nodes are slow`,
          },
        }),
    );
  }
}

/** Whether finalizers and the like are still worked off. */
export async function agentRuns(kube: KubeClient): Promise<boolean> {
  const agent = await kube.get(deployments, { namespace: systemNamespace, name: agentName });
  return agent?.metadata.deletionTimestamp === undefined && (agent?.status?.availableReplicas ?? 0) > 0;
}
