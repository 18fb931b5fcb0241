/** Where the suites for storage drivers run: one cluster whose class `liqo` binds to volumes of its own, or two, of which one has all pods and volumes of the other. */
import path from 'node:path';
import { cacheDir } from '#scripts/setup/cache-dir.ts';
import type { KubeObject } from '#shared/domain/kube-object.ts';
import { openProductClusters } from '#test/harness/product-clusters.ts';
import { startSnapshotters } from '#test/harness/snapshotters.ts';
import { repositoryRoot } from '#test/testbed/repository-root.ts';
import { consumer } from '../../whole-clusters/stage.ts';
import { type Ground, openRemoteGround } from '../ground.ts';
import { suiteImages } from '../images.ts';
import type { Place } from './driver.ts';

/** More than a node's volumes have together: what a spec may use is not what is asked here. */
const grantedStorage = '64Gi';

const offersItsClasses: KubeObject = {
  apiVersion: 'isthmus.dev/v1alpha1',
  kind: 'PeeringPolicy',
  metadata: { name: 'storage' },
  spec: { asProvider: { storageClasses: ['loop'] } },
} as KubeObject;

export async function openStorageGround(place: Place, dir: string, log: (line: string) => void): Promise<Ground> {
  if (place === 'provider') {
    const peering = ['--resource', `requests.storage=${grantedStorage}`];
    const storage = { policy: offersItsClasses, peering, start: startSnapshotters };
    return await openRemoteGround({ dir, log, virtual: 'all', storage });
  }
  const images = await suiteImages(cacheDir(), log);
  const clusters = [{ name: consumer, storage: true }];
  const world = await openProductClusters({ root: repositoryRoot, dir, clusters, brokerPort: 7792, log });
  const rome = world.cluster(consumer);
  for (const image of images) await rome.importImage(image);
  const snapshotters = await startSnapshotters(world.bed);
  await world.join(consumer);
  return {
    kubeconfigPath: rome.kubeconfigPath,
    kubectlPath: path.join(world.bed.dir, 'kubectl'),
    stop: () => snapshotters.stop(),
  };
}
