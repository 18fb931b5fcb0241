/** More lives of agents that are killed than `npm test` has: each draws other moments. `ISTHMUS_SEED` draws the same ones again. */
import path from 'node:path';
import { afterAll, beforeAll, vi } from 'vitest';
import { openProductClusters, removeProductClusters } from '#test/harness/product-clusters.ts';
import { repositoryRoot } from '#test/testbed/repository-root.ts';
import { killedAgents } from './scenarios/killed-agents.ts';
import { createStage, type Stage } from './stage.ts';

const place = { root: repositoryRoot, dir: path.join(repositoryRoot, '.build', 'killed-agents') };
const lives = Number(process.env.ISTHMUS_ROUNDS ?? 5);
vi.setConfig({ testTimeout: 400_000, hookTimeout: 180_000 });
let stage: Stage | undefined;
const onStage = (): Stage => {
  if (stage === undefined) throw new Error('the world did not open');
  return stage;
};

beforeAll(async () => {
  await removeProductClusters(place);
  const clusters = await openProductClusters({ ...place, clusters: ['rome', 'milan'], brokerPort: 7687 });
  await Promise.all([clusters.join('rome'), clusters.join('milan')]);
  stage = await createStage(clusters);
}, 900_000);
afterAll(async () => {
  await removeProductClusters(place);
}, 180_000);

killedAgents(onStage, lives);
