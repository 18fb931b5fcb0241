/** Every end that a move of a volume between two real clusters may have; `test/system/whole-clusters` has the copy forth and back. */
import path from 'node:path';
import { afterAll, beforeAll, vi } from 'vitest';
import { inOrder } from '#test/harness/in-order.ts';
import { removeProductClusters } from '#test/harness/product-clusters.ts';
import { repositoryRoot } from '#test/testbed/repository-root.ts';
import type { Stage } from '../whole-clusters/stage.ts';
import { describeMoves } from './moves.ts';
import { openStorageStage } from './storage-stage.ts';

const place = { root: repositoryRoot, dir: path.join(repositoryRoot, '.build', 'storage-moves') };
vi.setConfig({ testTimeout: 240_000, hookTimeout: 180_000 });
let stage: Stage;

beforeAll(async () => {
  await removeProductClusters(place);
  stage = await openStorageStage({ ...place, brokerPort: 7693 });
}, 900_000);
afterAll(() => removeProductClusters(place), 180_000);
inOrder('file');

describeMoves(() => stage, { everyEnd: true });
