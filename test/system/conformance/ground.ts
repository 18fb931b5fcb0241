/** Two real clusters, of which one lends its node to the other, and the suite's images in both. */

import { cacheDir } from '#scripts/setup/cache-dir.ts';
import type { GuestPolicy } from '#shared/schema/isthmus/guest-policy.ts';
import { acceptGuests } from '#test/harness/guest-policy.ts';
import { openProductClusters } from '#test/harness/product-clusters.ts';
import { repositoryRoot } from '#test/testbed/repository-root.ts';
import { clusterNames, consumer, createStage, provider, type Stage } from '../whole-clusters/stage.ts';
import { suiteImages } from './images.ts';

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
  limitsEnforcement: 'None',
};

export interface Ground {
  readonly stage: Stage;
  readonly kubeconfigPath: string;
  readonly kubectlPath: string;
}

/** The consumer's own node takes no pods, so that every pod of the suite is on the virtual one. */
export async function openGround(dir: string, log: (line: string) => void): Promise<Ground> {
  const images = await suiteImages(cacheDir(), log);
  const world = await openProductClusters({
    root: repositoryRoot,
    dir,
    clusters: [...clusterNames],
    brokerPort: 7791,
    log,
  });
  for (const name of clusterNames) for (const image of images) await world.cluster(name).importImage(image);
  const rome = world.cluster(consumer);
  // Of a ground that was kept: agents that changed since need a node.
  for (const { name } of rome.nodes) await rome.kubectl('uncordon', name);
  await Promise.all(clusterNames.map((name) => world.join(name)));
  const stage = await createStage(world);
  await acceptGuests(stage.api(provider), trusted).catch((error: unknown) => {
    // A ground that was kept has it already.
    if (!String(error).includes('already exists')) throw error;
  });
  await world.mustIsthmus('peer', consumer, provider, '--cpu', '16', '--memory', '32Gi', '--pods', '110', '--wait');
  await rome.restartController('kube-controller-manager', ['--controllers=*,-serviceaccount-controller']);
  for (const { name } of rome.nodes) await rome.kubectl('cordon', name);
  return { stage, kubeconfigPath: rome.kubeconfigPath, kubectlPath: stage.kubectlLine(consumer)[0] };
}
