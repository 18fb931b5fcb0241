/** Which pods of a namespace use a claim, and what a mover says of itself. Pure. */
import { isOwnedBy } from '#kube/writes/owner-references.ts';
import type { Pod } from '#shared/domain/kube-object.ts';
import { moveGate } from '#shared/domain/storage-keys.ts';
import type { VolumeMove } from '#shared/schema/isthmus/volume-move.ts';
import type { MoverResult } from '../mover/pull.ts';

export const usesClaim = ({ metadata, spec }: Pod, claim: string): boolean =>
  (spec?.volumes ?? []).some(
    ({ name, persistentVolumeClaim, ephemeral }) =>
      persistentVolumeClaim?.claimName === claim || (ephemeral != null && `${metadata.name}-${name}` === claim),
  );

export const isHeldBack = ({ spec }: Pod): boolean =>
  spec?.schedulingGates?.some(({ name }) => name === moveGate) ?? false;

export const hasEnded = ({ status }: Pod): boolean => status?.phase === 'Succeeded' || status?.phase === 'Failed';

/** Those that may read or write it, or keep it from being deleted; not our own. */
export const usersOf = (all: readonly Pod[], move: VolumeMove): Pod[] =>
  all.filter((pod) => usesClaim(pod, move.metadata.name) && !isOwnedBy(pod, move) && !isHeldBack(pod));

/** Undefined: something makes such a pod again when it is deleted, and it goes on with what is in the volume. */
export function whyNotStoppable(pod: Pod): string | undefined {
  const owner = pod.metadata.ownerReferences?.find(({ controller }) => controller);
  if (owner === undefined)
    return `pod ${pod.metadata.name} uses it and nothing would make that pod again: delete the pod first`;
  if (owner.kind === 'Job')
    return `pod ${pod.metadata.name} of Job ${owner.name} uses it: let the Job end and delete it first`;
  if (hasEnded(pod)) return `pod ${pod.metadata.name} has ended and still uses it: delete the pod first`;
  return undefined;
}

/** What a mover left when it ended; undefined: it left nothing that can be read. */
export function resultOf({ status }: Pod): MoverResult | undefined {
  const message = status?.containerStatuses?.[0]?.state?.terminated?.message;
  try {
    return message === undefined ? undefined : (JSON.parse(message) as MoverResult);
  } catch {
    return undefined;
  }
}

/** Why a pod does not run yet, in the words of the cluster where it is to run. */
export function hindrance({ metadata, status }: Pod): string {
  const waiting = status?.containerStatuses?.[0]?.state?.waiting;
  const refused = status?.conditions?.find(({ status: value, message }) => value === 'False' && message);
  const why = [waiting?.reason, waiting?.message ?? refused?.message].filter(Boolean).join(': ');
  return `pod ${metadata.name} to run${why ? ` (${why.slice(0, 300)})` : ''}`;
}
