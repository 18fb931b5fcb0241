/** Two real clusters, of which one lends its node to the other, and the suite's images in both. */
import { cacheDir } from '#scripts/setup/cache-dir.ts';
import type { KubeObject } from '#shared/domain/kube-object.ts';
import type { GuestPolicy } from '#shared/schema/isthmus/guest-policy.ts';
import { acceptGuests } from '#test/harness/guest-policy.ts';
import { openProductClusters } from '#test/harness/product-clusters.ts';
import type { TiedProgram } from '#test/harness/program.ts';
import { repositoryRoot } from '#test/testbed/repository-root.ts';
import type { Bed } from '#test/testbed/testbed.ts';
import { clusterNames, consumer, createStage, provider } from '../whole-clusters/stage.ts';
import { suiteImages } from './images.ts';
import { offloadSuiteNamespaces } from './offloads.ts';
import type { Share, SuiteTarget } from './suite.ts';
import { keepUntainted } from './untainted.ts';

/**
 * Of two clusters of one administrator: the suite asks for host networks, privileged containers, pods of each quality of service, and tolerations of all
 * kinds. What a provider refuses by default is a matter of docs/guests.md, and not of how a virtual node runs pods.
 */
const trusted: GuestPolicy = {
  podSecurity: 'privileged',
  volumes: [
    ...['configMap', 'downwardAPI', 'emptyDir', 'ephemeral', 'persistentVolumeClaim', 'projected', 'secret'],
    ...['hostPath', 'image'],
  ] as NonNullable<GuestPolicy['volumes']>,
  tolerations: ['*'],
  nodeLabels: ['*'],
  schedulers: ['*'],
  runtimeClasses: ['*'],
  priorityClasses: ['*'],
  nodeAnnotations: ['*'],
  externalNames: ['*'],
  namespaces: ['*', 'ingress-*'],
  limitsEnforcement: 'None',
};

export interface Ground extends SuiteTarget {
  /** Ends what the command does there beside the suite; the clusters stay. */
  stop(): Promise<void>;
}

export interface RemoteGroundOptions {
  readonly dir: string;
  readonly log: (line: string) => void;
  readonly virtual: Share;
  /** Nodes with volumes: what the provider is told of its classes, with which arguments the consumer peers, and what runs beside the clusters. */
  readonly storage?: {
    readonly policy: KubeObject;
    readonly peering: readonly string[];
    readonly start: (bed: Bed) => Promise<TiedProgram>;
  };
}

/**
 * Namespaces that the suite makes are offloaded. Where all nodes are virtual, the consumer's own node takes no pods; where half are, its scheduler spreads
 * pods over that node and the virtual one.
 */
export async function openRemoteGround({ dir, log, virtual, storage }: RemoteGroundOptions): Promise<Ground> {
  const images = await suiteImages(cacheDir(), log);
  const world = await openProductClusters({
    root: repositoryRoot,
    dir,
    clusters: clusterNames.map((name) => ({ name, ...(storage === undefined ? {} : { storage: true }) })),
    brokerPort: 7791,
    log,
  });
  for (const name of clusterNames) for (const image of images) await world.cluster(name).importImage(image);
  const beside = await storage?.start(world.bed);
  const rome = world.cluster(consumer);
  // Of a ground that was kept: agents that changed since need a node.
  for (const { name } of rome.nodes) await rome.kubectl('uncordon', name);
  await Promise.all(clusterNames.map((name) => world.join(name)));
  const stage = await createStage(world);
  if (storage !== undefined) await stage.apply(provider, storage.policy);
  await acceptGuests(stage.api(provider), trusted).catch((error: unknown) => {
    // A ground that was kept has it already.
    if (!String(error).includes('already exists')) throw error;
  });
  const asked = ['--cpu', '16', '--memory', '32Gi', '--pods', '110', ...(storage?.peering ?? [])];
  await world.mustIsthmus('peer', consumer, provider, ...asked, '--wait');
  await rome.restartController('kube-controller-manager', ['--controllers=*,-serviceaccount-controller']);
  if (virtual === 'all') for (const { name } of rome.nodes) await rome.kubectl('cordon', name);
  const stopOffloading = offloadSuiteNamespaces(stage.api(consumer), virtual, log);
  const stopWebhook = await keepUntainted(stage.api(consumer), world.bed.hostAddress);
  return {
    kubeconfigPath: rome.kubeconfigPath,
    kubectlPath: stage.kubectlLine(consumer)[0],
    async stop() {
      await stopOffloading();
      await stopWebhook();
      await beside?.stop();
    },
  };
}
