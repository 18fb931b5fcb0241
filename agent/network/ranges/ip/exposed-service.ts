/** An IP of the system namespace that stands for a Service of this cluster. Peers reach it at their view of the address it is granted. */
import type { Applied, Cache, Cluster } from '#kube/model/types.ts';
import { covers, deleteObject } from '#kube/writes/write-if-changed.ts';
import { apiVersionOf } from '#shared/domain/kube-object.ts';
import { fieldManager, label } from '#shared/domain/liqo-keys.ts';
import { networkAnnotation, networkLabel } from '#shared/domain/network-keys.ts';
import { again, type Outcome, settled } from '#shared/domain/outcome.ts';
import type { Ip } from '#shared/schema/liqo/ip.ts';
import { networkKinds } from '#shared/schema/liqo/network-resources.ts';

export interface ExposedService {
  readonly name: string;
  readonly namespace: string;
  /** One of `ipType`. */
  readonly ipType: string;
  readonly clusterIp: string;
  /** The node whose pod or process answers all connections: callers arrive there under their own addresses. */
  readonly servedBy?: string;
}

/** An answer may come from a pod or host on any node: only behind the address of the node that translated does it find the way back. */
export const buildExposedService = ({ name, namespace, ipType, clusterIp, servedBy }: ExposedService): Applied<Ip> => ({
  apiVersion: apiVersionOf(networkKinds.ips),
  kind: networkKinds.ips.kind,
  metadata: {
    name,
    namespace,
    labels: { [label.managed]: 'true', [networkLabel.ipType]: ipType },
    ...(servedBy !== undefined && { annotations: { [networkAnnotation.servedBy]: servedBy } }),
  },
  spec: { ip: clusterIp, masquerade: true },
});

/** The address of an IP cannot be changed: another one takes its place. */
export async function ensureExposedService(
  { api }: Cluster,
  cache: Cache<Ip>,
  service: ExposedService,
  signal: AbortSignal,
): Promise<Outcome> {
  const { namespace, name } = service;
  const known = cache.get({ namespace, name });
  const wanted = buildExposedService(service);
  if (known?.metadata.deletionTimestamp !== undefined) return again(1_000);
  if (known !== undefined && known.spec.ip !== service.clusterIp) {
    await deleteObject(api, networkKinds.ips, known, signal);
    return again(1_000);
  }
  if (!covers(known, wanted)) await api.apply(networkKinds.ips, wanted, { fieldManager: fieldManager.agent }, signal);
  return settled;
}
