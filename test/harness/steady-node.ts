/** A node without a kubelet that has capacity and stays ready: kube-controller-manager takes the word of its Lease for it. */
import { setTimeout as timer } from 'node:timers/promises';
import type { KubeApi } from '#kube/model/types.ts';
import { leases, nodes } from '#shared/domain/core-kinds.ts';
import type { Node } from '#shared/domain/kube-object.ts';

const beatMs = 4_000;

/** As much as these clusters may lend: their pods never run. */
export const plenty = {
  cpu: '1000',
  memory: '1000Gi',
  pods: '10000',
  'ephemeral-storage': '1000Gi',
  'example.com/gpu': '8',
} as const;

const readyStatus = { allocatable: { ...plenty }, conditions: [{ type: 'Ready', status: 'True' }] } as const;

/** Without a heartbeat the node is declared dead. */
export async function beat(api: KubeApi, node: string): Promise<void> {
  const ref = { namespace: 'kube-node-lease', name: node };
  const renewTime = new Date().toISOString().replace('Z', '000Z');
  const spec = { holderIdentity: node, leaseDurationSeconds: 40, renewTime };
  const lease = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: ref, spec };
  await api.apply(leases, lease, { fieldManager: 'kubelet' });
}

/** Until `signal` aborts. */
export async function startSteadyNode(
  api: KubeApi,
  name: string,
  labels: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<void> {
  const node = { apiVersion: 'v1', kind: 'Node', metadata: { name, labels: { ...labels } }, status: readyStatus };
  await api.create(nodes, node as unknown as Node);
  const beats = async (): Promise<void> => {
    while (!signal.aborted) {
      await beat(api, name).catch(() => undefined);
      await timer(beatMs, undefined, { signal }).catch(() => undefined);
    }
  };
  void beats();
}
