/** How pods that have to end are hurried. Pure. */
import type { Pod } from '#shared/domain/kube-object.ts';

/** So long after the last word to it, a kubelet is not there to answer. */
export const lostKubeletMs = 30_000;

/**
 * The grace period, in seconds, with which to delete a pod that must be gone by `deadlineMs`; undefined: nothing to do at `nowMs`. One second before
 * zero: of a pod that is deleted with zero the API server knows nothing any more, and its kubelet grants it the grace period of its spec.
 */
export function hurriedGrace(
  { metadata }: Pick<Pod, 'metadata'>,
  deadlineMs: number,
  nowMs: number,
): 0 | 1 | undefined {
  if (nowMs < deadlineMs) return undefined;
  const { deletionTimestamp, deletionGracePeriodSeconds: grace } = metadata;
  if (deletionTimestamp === undefined || (grace ?? 0) > 1) return 1;
  return nowMs >= Math.max(deadlineMs, Date.parse(deletionTimestamp)) + lostKubeletMs ? 0 : undefined;
}
