/** Which pods are made for ShadowPods, and for which. Pure. */
import type { Pod } from '#shared/domain/kube-object.ts';
import { isthmusAnnotation, label, managedByShadowPod } from '#shared/domain/liqo-keys.ts';

/**
 * UID of the ShadowPod that a pod was made for; undefined: the pod is not ours. '' is a pod of ours without an owner: a consumer that deletes a
 * ShadowPod and asks for its dependents to stay leaves it behind.
 */
export function ownerUid({ metadata }: Pod): string | undefined {
  const controller = metadata.ownerReferences?.find((owner) => owner.controller);
  if (controller) return controller.kind === 'ShadowPod' ? controller.uid : undefined;
  const isMarked =
    metadata.labels?.[label.managedBy] === managedByShadowPod &&
    metadata.annotations?.[isthmusAnnotation.propagated] !== undefined;
  return isMarked ? '' : undefined;
}
