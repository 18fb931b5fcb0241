/** Whether this cluster is being left, so that the node process takes everything of ours along when it ends. */
import type { KubeApi } from '#kube/model/types.ts';
import type { KubeObject, ObjectRef, ResourceType } from '#shared/domain/kube-object.ts';
import { networkAnnotation } from '#shared/domain/network-keys.ts';

const daemonSets: ResourceType = {
  group: 'apps',
  version: 'v1',
  kind: 'DaemonSet',
  plural: 'daemonsets',
  namespaced: true,
};

/** A DaemonSet that is annotated so, is being deleted or is gone will not come back; one that cannot be asked about may. */
export async function isUninstalling(api: KubeApi, ref: ObjectRef, signal: AbortSignal): Promise<boolean> {
  try {
    const found: KubeObject | undefined = await api.get(daemonSets, ref, signal);
    if (found === undefined || found.metadata.deletionTimestamp !== undefined) return true;
    return found.metadata.annotations?.[networkAnnotation.uninstalling] === 'true';
  } catch {
    return false;
  }
}
