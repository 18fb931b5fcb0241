/**
 * ShadowPods whose first word was heard here, while everything was followed: nobody can have made a pod of one before, so it needs no second
 * look at the API server. Each is given out once: whatever comes of it, the next time it is read anew.
 */
import type { Cache } from '#kube/model/types.ts';
import type { ObjectRef } from '#shared/domain/kube-object.ts';
import type { ShadowPod } from '#shared/schema/liqo/shadow-pod.ts';
import { isNew } from '../model/caches.ts';

export interface Newcomers {
  /** Whole; undefined: not one of them, or no longer. */
  take(ref: ObjectRef): ShadowPod | undefined;
}

export function newcomers(shadows: Cache<ShadowPod>): Newcomers {
  const waiting = new Set<string>();
  let isFollowing = false;
  shadows.subscribe(({ before, after }) => {
    const { uid } = (after ?? before)?.metadata ?? {};
    if (uid === undefined) return;
    if (!before && isFollowing && shadows.isSynced()) waiting.add(uid);
    if (!after) waiting.delete(uid);
  });
  // What was known already is told first, and may have a history.
  isFollowing = true;
  return {
    take(ref) {
      const shadow = shadows.get(ref);
      const uid = shadow?.metadata.uid;
      if (shadow === undefined || uid === undefined || !waiting.delete(uid)) return undefined;
      return isNew(shadow) && shadow.metadata.deletionTimestamp === undefined ? shadow : undefined;
    },
  };
}
