/** ShadowPods whose end was heard here: an API server says so only when it is final, so that nobody has to ask whether it is true. */
import type { Cache } from '#kube/model/types.ts';
import type { ShadowPod } from '#shared/schema/liqo/shadow-pod.ts';

export interface Departed {
  /** False: it may be there. */
  has(uid: string): boolean;
}

/** What is made of them goes soon after; of older ones the API server is asked again. */
const most = 10_000;

export function departed(shadows: Pick<Cache<ShadowPod>, 'subscribe'>): Departed {
  const gone = new Set<string>();
  shadows.subscribe(({ before, after }) => {
    const uid = before?.metadata.uid;
    if (after?.metadata.uid !== undefined) gone.delete(after.metadata.uid);
    if (uid === undefined || uid === after?.metadata.uid) return;
    gone.add(uid);
    const [oldest] = gone;
    if (gone.size > most && oldest !== undefined) gone.delete(oldest);
  });
  return { has: (uid) => gone.has(uid) };
}
