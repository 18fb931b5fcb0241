/**
 * ShadowPods whose addition came by the watch, after the first list: this process knows them from their beginning and has made no pod of them yet, so the cache
 * cannot be behind a write of ours, and a second look at the API server is saved. Each is given out once; the next time, the API server is asked.
 */
import type { OwnWrites } from '#kube/cache/own-writes.ts';
import type { Cache } from '#kube/model/types.ts';
import type { ObjectRef } from '#shared/domain/kube-object.ts';
import type { ShadowPod } from '#shared/schema/liqo/shadow-pod.ts';
import { isNew } from '../model/caches.ts';

export interface FirstSeen {
  /** Whole; undefined: not one of them, or no longer. */
  take(ref: ObjectRef): ShadowPod | undefined;
}

/** `written` follows `shadows`. */
export function firstSeen(shadows: Cache<ShadowPod>, written: Pick<OwnWrites<ShadowPod>, 'uids'>): FirstSeen {
  const untouched = written.uids();
  let isFollowing = false;
  shadows.subscribe(({ before, after }) => {
    const uid = after?.metadata.uid;
    if (uid !== undefined && !before && isFollowing && shadows.isSynced()) untouched.add(uid);
  });
  // A subscription first delivers what the cache holds already, which may have a history.
  isFollowing = true;
  return {
    take(ref) {
      const shadow = shadows.get(ref);
      const uid = shadow?.metadata.uid;
      if (shadow === undefined || uid === undefined || !untouched.delete(uid)) return undefined;
      return isNew(shadow) && shadow.metadata.deletionTimestamp === undefined ? shadow : undefined;
    },
  };
}
