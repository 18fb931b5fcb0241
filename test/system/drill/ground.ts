/** Two real clusters that have joined a broker, one borrowing from the other, with a Deployment that runs there. */
import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { openProductClusters, type ProductClusters } from '#test/harness/product-clusters.ts';
import { repositoryRoot } from '#test/testbed/repository-root.ts';
import { clusterNames, createStage, reported, type Stage } from '../whole-clusters/stage.ts';
import { container, deployment } from '../whole-clusters/workloads.ts';
import type { DrillGround } from './fault.ts';

const namespace = 'shop';

/** Of a stage whose clusters are peered. */
async function groundOf(stage: Stage): Promise<DrillGround> {
  const dir = path.join(stage.world.stateDir, 'drill');
  mkdirSync(dir, { recursive: true });
  await stage.createNamespace(namespace);
  const offloaded = await stage.offload(namespace, '--pod-offloading-strategy', 'Remote');
  // A ground that was kept has it already.
  if (offloaded.code !== 0 && !offloaded.stderr.includes('already_exists')) throw new Error(reported(offloaded));
  await stage.apply('rome', deployment(namespace, 'web', 1, [container(['serve'])]));
  const ready = async (): Promise<void> => {
    const args = ['rollout', 'status', 'deployment/web', '-n', namespace, '--timeout=120s'];
    const ended = await stage.kubectl('rome', args);
    if (ended.code !== 0) throw new Error(`the Deployment of the drill does not run: ${ended.stderr}`);
  };
  await ready();
  return { stage, dir, namespace, kubeconfig: (cluster) => stage.world.cluster(cluster).kubeconfigPath };
}

export async function openDrill(dir: string, log: (line: string) => void): Promise<DrillGround> {
  const world: ProductClusters = await openProductClusters({
    root: repositoryRoot,
    dir,
    clusters: [...clusterNames],
    brokerPort: 7691,
    log,
  });
  await Promise.all(clusterNames.map((name) => world.join(name)));
  const stage = await createStage(world);
  await stage.mustPeer();
  return groundOf(stage);
}
