/** Reads and builds owner references. */
import { apiVersionOf, type KubeObject, type OwnerReference, type ResourceType } from '#shared/domain/kube-object.ts';

export const ownerOf = (type: ResourceType, owner: KubeObject): OwnerReference => ({
  apiVersion: apiVersionOf(type),
  kind: type.kind,
  name: owner.metadata.name,
  uid: owner.metadata.uid ?? '',
  controller: true,
});

/** Name of the owner of this kind, whichever incarnation. */
export const ownerName = (type: ResourceType, child: KubeObject): string | undefined =>
  child.metadata.ownerReferences?.find(
    (owner) => owner.kind === type.kind && owner.apiVersion.split('/')[0] === type.group,
  )?.name;

export const isOwnedBy = (child: KubeObject, owner: KubeObject): boolean =>
  child.metadata.ownerReferences?.some((reference) => reference.uid === owner.metadata.uid) ?? false;
