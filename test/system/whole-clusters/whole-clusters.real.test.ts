/** The whole product on two real clusters, a broker and agents in pods: one world for every scenario, since starting it is what takes long. */
import path from 'node:path';
import { afterAll, beforeAll, vi } from 'vitest';
import { inOrder } from '#test/harness/in-order.ts';
import { openProductClusters, removeProductClusters } from '#test/harness/product-clusters.ts';
import { repositoryRoot } from '#test/testbed/repository-root.ts';
import { brokerDown } from './scenarios/broker-down.ts';
import { credentials } from './scenarios/credentials.ts';
import { firstPeering } from './scenarios/first-peering.ts';
import { kubeletEndpoint } from './scenarios/kubelet-endpoint.ts';
import { oneProcess } from './scenarios/one-process.ts';
import { refusals } from './scenarios/refusals.ts';
import { remotePods } from './scenarios/remote-pods.ts';
import { unpeering } from './scenarios/unpeering.ts';
import { createStage, type Stage } from './stage.ts';

const place = { root: repositoryRoot, dir: path.join(repositoryRoot, '.build', 'world-under-test') };
/** While writing a scenario: `ISTHMUS_KEEP_WORLD=1` leaves everything running, and the next run starts from it. */
const keep = process.env.ISTHMUS_KEEP_WORLD === '1';
/** Every wait inside has a deadline of its own, which says what was waited for. */
vi.setConfig({ testTimeout: 400_000, hookTimeout: 180_000 });
let stage: Stage | undefined;
const onStage = (): Stage => {
  if (stage === undefined) throw new Error('the world did not open');
  return stage;
};

beforeAll(async () => {
  if (!keep) await removeProductClusters(place);
  const clusters = await openProductClusters({ ...place, clusters: ['rome', 'milan'], brokerPort: 7543 });
  await Promise.all([clusters.join('rome'), clusters.join('milan')]);
  stage = await createStage(clusters);
}, 900_000);
afterAll(async () => {
  if (!keep) await removeProductClusters(place);
}, 180_000);

// In this order: each scenario finds what the ones before it left. A world that was kept may have all of that already.
if (!keep) inOrder('file');
firstPeering(onStage);
oneProcess(onStage);
remotePods(onStage);
refusals(onStage);
kubeletEndpoint(onStage);
credentials(onStage);
brokerDown(onStage);
unpeering(onStage);
