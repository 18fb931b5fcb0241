/** By what an object of a guest is guarded: the label of its consumer and a finalizer of ours. Pure. */
import { guestVolume } from '#shared/domain/guest-volume-keys.ts';
import type { KubeObject } from '#shared/domain/kube-object.ts';

export const isGuarded = ({ metadata }: KubeObject, finalizer: string, consumer: string): boolean =>
  metadata.finalizers?.includes(finalizer) === true && metadata.labels?.[guestVolume.label] === consumer;

/** Both, as one merge patch that is conditional on the version that was read. */
export function guardingPatch({ metadata }: KubeObject, finalizer: string, consumer: string) {
  const { uid, resourceVersion, finalizers = [] } = metadata;
  const others = finalizers.filter((one) => one !== finalizer);
  return {
    metadata: {
      uid,
      resourceVersion,
      labels: { [guestVolume.label]: consumer },
      finalizers: [...others, finalizer],
    },
  };
}
