/** When and how a guest's pod that is on its way out is hurried. Pure. */
import { hurriedGrace, lostKubeletMs } from '#agent/model/forced-end.ts';
import type { Namespace, Pod } from '#shared/domain/kube-object.ts';
import { ownerUid } from '../model/pod-owner.ts';

export interface Observed {
  readonly pod: Pod;
  readonly namespace: Namespace | undefined;
  /** Of the rules for the consumer. */
  readonly maxGraceSeconds: number;
  readonly nowMs: number;
}

export type Departure =
  | { readonly do: 'nothing' }
  | { readonly do: 'look'; readonly inMs: number }
  | { readonly do: 'delete'; readonly graceSeconds: number; readonly because: string };

/**
 * No pod has longer than the policy allows, also when it was made before the policy. When its namespace goes, as with the end of a peering, it has to
 * be gone by then: what is left has a second, and then no kubelet.
 */
export function decide({ pod, namespace, maxGraceSeconds, nowMs }: Observed): Departure {
  const { deletionTimestamp, deletionGracePeriodSeconds: grace = 0 } = pod.metadata;
  if (ownerUid(pod) === undefined) return { do: 'nothing' };
  if (deletionTimestamp !== undefined && grace > maxGraceSeconds) {
    const because = `it asked for ${grace} s to end, the policy allows ${maxGraceSeconds}`;
    return { do: 'delete', graceSeconds: maxGraceSeconds, because };
  }
  const goneAt = namespace?.metadata.deletionTimestamp;
  if (goneAt === undefined) return { do: 'nothing' };
  const deadlineMs = Date.parse(goneAt) + maxGraceSeconds * 1_000;
  const hurried = hurriedGrace(pod, deadlineMs, nowMs);
  if (hurried !== undefined) {
    const because = `its namespace was deleted ${Math.round((nowMs - Date.parse(goneAt)) / 1_000)} s ago`;
    return { do: 'delete', graceSeconds: hurried, because };
  }
  return { do: 'look', inMs: nowMs < deadlineMs ? deadlineMs - nowMs : lostKubeletMs };
}
