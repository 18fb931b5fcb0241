/**
 * Kubernetes' own snapshot controller, and its csi-snapshotter for the driver of each node, beside a cluster of the test bed that has storage: as the
 * administrator of such a cluster runs them for drivers that are on one node each.
 */
import path from 'node:path';
import { buildSnapshotter } from '#test/testbed/build.ts';
import { runningComponents } from '#test/testbed/processes.ts';
import { storageDriver } from '#test/testbed/storage-addons.ts';
import type { BedCluster } from '#test/testbed/testbed.ts';
import { startTied, type TiedProgram } from './program.ts';

/** `slot`: of the bed. The kinds of snapshots have to be served. Logs are beside those of the cluster; everything ends with this process. */
export async function startSnapshotters(slot: number, cluster: BedCluster): Promise<TiedProgram> {
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
  return {
    async stop() {
      await Promise.all(all.map((one) => one.stop()));
    },
  };
}
