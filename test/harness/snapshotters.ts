/**
 * Kubernetes' own snapshot controller, and its csi-snapshotter for the driver of each node, beside a cluster of the test bed that has storage: as the
 * administrator of such a cluster runs them for drivers that are on one node each.
 */
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { createKubeApi } from '#kube/http/client.ts';
import { connectKubeconfig } from '#kube/http/kubeconfig.ts';
import { snapshotGroup, type VolumeSnapshotClass, volumeSnapshotClasses } from '#shared/domain/snapshot-kinds.ts';
import { remoteVolumeDriver } from '#shared/domain/storage-keys.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { buildSnapshotter } from '#test/testbed/build.ts';
import { runningComponents } from '#test/testbed/processes.ts';
import { slotOf } from '#test/testbed/slots.ts';
import { storageDriver } from '#test/testbed/storage-addons.ts';
import type { Bed, BedCluster } from '#test/testbed/testbed.ts';
import { startTied, type TiedProgram } from './program.ts';
import { installSnapshotKinds } from './snapshot-controller.ts';

/** The default class of a driver; its snapshots go with their VolumeSnapshots. */
const snapshotClass = (name: string, driver: string): VolumeSnapshotClass =>
  ({
    apiVersion: `${snapshotGroup}/v1`,
    kind: 'VolumeSnapshotClass',
    metadata: { name, annotations: { 'snapshot.storage.kubernetes.io/is-default-class': 'true' } },
    driver,
    deletionPolicy: 'Delete',
  }) as VolumeSnapshotClass;

const together = (all: readonly TiedProgram[]): TiedProgram => ({
  async stop() {
    await Promise.all(all.map((one) => one.stop()));
  },
});

/**
 * In every cluster of the bed, the kinds and the classes `loop`, of the bed's driver, and `isthmus`, for volumes at providers, all of which stay; and programs,
 * which end with this process. Logs are beside those of the cluster.
 */
export async function startSnapshotters({ dir, clusters }: Bed): Promise<TiedProgram> {
  const slot = slotOf(dir);
  if (slot === undefined) throw new TypeError(`no slot is taken for the bed in ${dir}`);
  return together(await Promise.all(clusters.map((cluster) => startIn(cluster, slot))));
}

async function startIn(cluster: BedCluster, slot: number): Promise<TiedProgram> {
  const connection = await connectKubeconfig(await readFile(cluster.kubeconfigPath, 'utf8'));
  try {
    const api = createKubeApi(connection, { clock: systemClock, log: silentLog });
    await installSnapshotKinds({ api });
    for (const made of [snapshotClass('loop', storageDriver), snapshotClass('isthmus', remoteVolumeDriver)])
      await api.apply(volumeSnapshotClasses, made, { fieldManager: 'snapshotters' });
  } finally {
    connection.close();
  }
  const [controller, sidecar] = await Promise.all([
    buildSnapshotter('snapshot-controller'),
    buildSnapshotter('csi-snapshotter'),
  ]);
  const everywhere = [`--kubeconfig=${cluster.kubeconfigPath}`, '--leader-election=false'];
  const start = (name: string, program: string, args: readonly string[], env?: Readonly<Record<string, string>>) =>
    startTied(program, [...everywhere, ...args], path.join(cluster.dir, 'logs', `${name}.log`), env);
  const components = runningComponents(slot);
  const all = [
    start('snapshot-controller', controller, ['--enable-distributed-snapshotting']),
    ...cluster.nodes.map(({ name }) => {
      // The socket is in the file system of the node.
      const root = `/proc/${components.get(`${name}/init`)}/root`;
      const socket = `${root}/var/lib/kubelet/plugins/${storageDriver}/csi.sock`;
      return start(`csi-snapshotter-${name}`, sidecar, [`--csi-address=${socket}`, '--node-deployment'], {
        NODE_NAME: name,
      });
    }),
  ];
  return together(all);
}
