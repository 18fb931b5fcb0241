/** An object of a fixed name that one other object owns: never taken over from another owner, replaced when its owner was an earlier incarnation. */
import type { Applied, KubeApi } from '#kube/model/types.ts';
import type { KubeObject, OwnerReference, ResourceType } from '#shared/domain/kube-object.ts';
import { fieldManager } from '#shared/domain/liqo-keys.ts';
import { isOwnedBy } from './owner-references.ts';
import { covers, deleteObject } from './write-if-changed.ts';

/** `done`: it is as wanted. `replaced`: the old one is being deleted, look again. `foreign`: it has another owner. */
export type Ensured = 'done' | 'replaced' | 'foreign';

const controllerOf = (object: KubeObject): OwnerReference | undefined =>
  object.metadata.ownerReferences?.find(({ controller }) => controller === true);

/** Whose it is, as seen by `owner`. */
export function ownership(actual: KubeObject, owner: OwnerReference): 'ours' | 'earlier' | 'foreign' {
  const holder = controllerOf(actual);
  if (holder?.uid === owner.uid) return 'ours';
  const isEarlier =
    holder !== undefined &&
    [holder.apiVersion, holder.kind, holder.name].join() === [owner.apiVersion, owner.kind, owner.name].join();
  return isEarlier ? 'earlier' : 'foreign';
}

export async function ensureOwned<T extends KubeObject>(
  api: KubeApi,
  type: ResourceType<T>,
  actual: T | undefined,
  wanted: Applied<T>,
  signal: AbortSignal,
): Promise<Ensured> {
  const owner = controllerOf(wanted as unknown as KubeObject);
  if (actual !== undefined && owner !== undefined) {
    if (actual.metadata.deletionTimestamp !== undefined) return 'replaced';
    const relation = ownership(actual, owner);
    if (relation === 'foreign') return 'foreign';
    if (relation === 'earlier') {
      await deleteObject(api, type, actual, signal);
      return 'replaced';
    }
    if (covers(actual, wanted)) return 'done';
  }
  await api.apply(type, wanted, { fieldManager: fieldManager.agent }, signal);
  return 'done';
}

/** Deletes what `owner` owns, and nothing else. */
export async function deleteOwned<T extends KubeObject>(
  api: KubeApi,
  type: ResourceType<T>,
  actual: T | undefined,
  owner: KubeObject,
  signal: AbortSignal,
): Promise<void> {
  if (actual !== undefined && actual.metadata.deletionTimestamp === undefined && isOwnedBy(actual, owner))
    await deleteObject(api, type, actual, signal);
}
