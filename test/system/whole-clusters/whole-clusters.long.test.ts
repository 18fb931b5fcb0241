/**
 * What `npm test` leaves out of the whole product on two real clusters, because it waits for minutes: updates that are taken back, a cut of 30 s, a provider that is dead when its
 * peering ends, and agents that are killed, in as many lives as `ISTHMUS_ROUNDS` says. `ISTHMUS_SEED` draws the same moments again.
 */
import path from 'node:path';
import { afterAll, beforeAll, vi } from 'vitest';
import { inOrder } from '#test/harness/in-order.ts';
import { openProductClusters, removeProductClusters } from '#test/harness/product-clusters.ts';
import { repositoryRoot } from '#test/testbed/repository-root.ts';
import { cutOffProvider } from './scenarios/cut-off.ts';
import { deadProvider } from './scenarios/dead-provider.ts';
import { killedAgents } from './scenarios/killed-agents.ts';
import { takenBackUpdates } from './scenarios/taken-back.ts';
import { createStage, type Stage } from './stage.ts';

const place = { root: repositoryRoot, dir: path.join(repositoryRoot, '.build', 'long-world') };
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
  await stage.mustPeer();
}, 900_000);
afterAll(async () => {
  await removeProductClusters(place);
}, 180_000);

// In this order: each scenario finds what the ones before it left.
inOrder('file');
takenBackUpdates(onStage);
cutOffProvider(onStage);
deadProvider(onStage);
killedAgents(onStage, lives);
