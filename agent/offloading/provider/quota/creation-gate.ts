/**
 * Second line behind admission: replicas of the webhook can each let one pod in at the same instant, and together too many. Pods are made by
 * the leader alone, so here the sum is exact: of those admitted, only as many get their pod as the quota holds. Pods that run stay.
 */
import type { OwnWrites } from '#kube/cache/own-writes.ts';
import type { Cache } from '#kube/model/types.ts';
import { keyOf, type Pod, refOf } from '#shared/domain/kube-object.ts';
import { label } from '#shared/domain/liqo-keys.ts';
import type { ShadowPod } from '#shared/schema/liqo/shadow-pod.ts';
import type { Rulebook } from '../guests/rulebook.ts';
import { ownerUid } from '../model/pod-owner.ts';
import { validateQuota } from './fits.ts';
import { UsageTotals, withoutAmounts } from './usage-totals.ts';

export interface CreationGate {
  /** Undefined: it may have its pod, and counts from now on. Otherwise why it has to wait. */
  enter(shadow: ShadowPod): string | undefined;
  /** Its pod was not made after all. */
  leave(shadow: ShadowPod): void;
}

/** `written` follows `shadows`. */
export function createCreationGate(
  rulebook: Rulebook,
  shadows: Cache<ShadowPod>,
  pods: Cache<Pod>,
  written: Pick<OwnWrites<ShadowPod>, 'uids'>,
): CreationGate {
  /**
   * Those that were let in and whose pod or phase the caches may not show yet. Without a deadline: a place that expired while a watch lags would be
   * given away twice. It is free when the creation fails, or with the end of its ShadowPod.
   */
  const letIn = written.uids();
  const isMade = (shadow: ShadowPod): boolean => {
    const pod = pods.get(refOf(shadow));
    return pod !== undefined && ownerUid(pod) === shadow.metadata.uid;
  };
  const hasPod = (shadow: ShadowPod): boolean =>
    letIn.has(shadow.metadata.uid ?? '') || (shadow.status?.phase ?? 'Unknown') !== 'Unknown' || isMade(shadow);
  const totals = new UsageTotals({ shadows, pods, rulebook }, hasPod);

  return {
    enter(shadow) {
      const uid = shadow.metadata.uid ?? '';
      const creator = shadow.metadata.labels?.[label.creatorUser];
      if (creator === undefined || hasPod(shadow)) return undefined;
      const used = withoutAmounts(totals.of(creator), [totals.part(creator, keyOf(shadow))]);
      for (const quota of rulebook.quotasOf(creator)) {
        // Cordoning and enforcement are about admission, which this ShadowPod has passed.
        const spec = { user: quota.spec.user, resources: quota.spec.resources };
        const verdict = validateQuota({ ...quota, spec }, rulebook.specOf(shadow), used);
        if (!verdict.allowed) return verdict.message;
      }
      letIn.add(uid);
      totals.look(keyOf(shadow));
      return undefined;
    },
    leave(shadow) {
      letIn.delete(shadow.metadata.uid ?? '');
      totals.look(keyOf(shadow));
    },
  };
}
