/** Takes the network out of a cluster: node processes first, which sweep the kernel as they end, then what they and the controllers made. */
import type { KubeClient } from '#cli/cluster/open.ts';
import type { CliIo } from '#cli/output/io.ts';
import type { Step } from '#cli/output/progress.ts';
import { daemonSets, pods } from '#shared/domain/core-kinds.ts';
import { type KubeObject, type ResourceType, refOf } from '#shared/domain/kube-object.ts';
import { systemNamespace } from '#shared/domain/liqo-keys.ts';
import { fabricName } from '#shared/domain/network-keys.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';
import { poll } from './apply.ts';
import { orUndefined } from './cluster-state.ts';
import { fabricLabels } from './fabric-manifests.ts';

const selector = Object.entries(fabricLabels)
  .map(([key, value]) => `${key}=${value}`)
  .join(',');

/**
 * Resolves when no node process runs any more. A node that does not answer keeps its pod: after the timeout this fails, and what is in the
 * kernel of that node goes with its next start.
 */
export async function removeFabric(io: CliIo, kube: KubeClient, timeoutMs: number, step: Step): Promise<void> {
  step.update('node processes');
  if (!(await kube.delete(daemonSets, { namespace: systemNamespace, name: fabricName }))) return;
  let left: string[] = [];
  await poll(
    io,
    timeoutMs,
    async () => {
      const running = await kube.list<KubeObject & { spec?: { nodeName?: string } }>(pods, selector);
      left = running.map(({ metadata, spec }) => spec?.nodeName ?? metadata.name);
      return running.length === 0 ? true : undefined;
    },
    () =>
      new AppError('deadline_exceeded', `the node processes do not end on ${left.join(', ')}`, {
        detail: { remedy: 'look at these nodes, or delete them when they are gone for good; then repeat' },
      }),
  );
}

/** Made by controllers, and of no use without them. What people wrote stays, unless it stands in the system namespace. */
const made: readonly ResourceType[] = [
  networkKinds.gatewayServers,
  networkKinds.gatewayClients,
  networkKinds.wgGatewayServers,
  networkKinds.wgGatewayClients,
  networkKinds.connections,
  networkKinds.internalFabrics,
  networkKinds.internalNodes,
];

/** After the controllers have ended: nobody else takes finalizers off any more, and with them neither object nor namespace would go. */
export async function removeNetworkObjects(io: CliIo, kube: KubeClient, step: Step): Promise<void> {
  for (const type of Object.values(networkKinds) as readonly ResourceType[]) {
    step.update(type.plural);
    for (const object of await listPatiently(io, kube, type)) {
      if (object.metadata.finalizers?.length)
        await kube.mergePatch(type, refOf(object), { metadata: { finalizers: null } });
      if (made.includes(type) || object.metadata.namespace === systemNamespace) await kube.delete(type, refOf(object));
    }
  }
}

/** An API server that has not served a kind before says 429 for a moment. */
export const listPatiently = (io: CliIo, kube: KubeClient, type: ResourceType): Promise<KubeObject[]> =>
  poll(
    io,
    10_000,
    () => orUndefined(kube.list<KubeObject>(type), 'kube_throttled'),
    () => new AppError('deadline_exceeded', `the API server does not list ${type.plural}`),
  );
