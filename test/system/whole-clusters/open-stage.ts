/** Rome and milan, joined at a broker, for all tests of a file: opened before the first, removed after the last. */
import path from 'node:path';
import { afterAll, beforeAll, vi } from 'vitest';
import { openProductClusters, removeProductClusters } from '#test/harness/product-clusters.ts';
import { repositoryRoot } from '#test/testbed/repository-root.ts';
import { clusterNames, createStage, type Stage } from './stage.ts';

interface StageOptions {
  /** In `.build`; with the port, one for each file, since files run side by side. */
  readonly folder: string;
  readonly brokerPort: number;
  /** Whether the nodes have volumes, by a CSI driver. */
  readonly storage?: boolean;
  /** Leaves the clusters running; the next run starts from those that it finds. */
  readonly keep?: boolean;
  /** The last step before the first test. */
  readonly prepare?: (stage: Stage) => Promise<unknown>;
}

/** Every wait inside has a deadline of its own, which says what was waited for: those of vitest only end a test that forgot one. */
export function openStage({ folder, brokerPort, storage = false, keep = false, prepare }: StageOptions): () => Stage {
  const place = { root: repositoryRoot, dir: path.join(repositoryRoot, '.build', folder) };
  let stage: Stage | undefined;
  vi.setConfig({ testTimeout: 400_000, hookTimeout: 180_000 });
  beforeAll(async () => {
    if (!keep) await removeProductClusters(place);
    const clusters = clusterNames.map((name) => ({ name, storage }));
    const opened = await openProductClusters({ ...place, clusters, brokerPort });
    await Promise.all(clusterNames.map((name) => opened.join(name)));
    const created = await createStage(opened);
    await prepare?.(created);
    stage = created;
  }, 900_000);
  afterAll(async () => {
    if (!keep) await removeProductClusters(place);
  }, 180_000);
  return () => {
    if (stage === undefined) throw new Error(`the clusters of .build/${folder} did not open`);
    return stage;
  };
}
