/**
 * Admission by quota: of what asks at the same instant, this replica lets in only as much as fits. A refusal is never based on a cache alone: before
 * it the API server is asked, so that the share of an object that is gone is free at once.
 */
import type { Verdict } from '#agent/admission/review.ts';
import type { Amounts } from '#shared/domain/pod-resources.ts';
import type { Clock } from '#shared/ports/clock.ts';
import { Reservations } from './reservations.ts';

interface Asked {
  /** Namespace and name of the object. */
  readonly key: string;
  /** Whose quota it takes from: a creator of ShadowPods, or a consumer. */
  readonly user: string;
  readonly amounts: Amounts;
  readonly dryRun: boolean;
}

/** Whether the object fits beside what exists and what is reserved but not shown by a list yet. */
type Judge = (reserved: ReadonlyMap<string, Amounts>) => Verdict;

export interface AdmissionGate {
  /** Admitted a moment ago and not shown by the cache. */
  unseen(user: string): ReadonlyMap<string, Amounts>;
  /** The cache has shown the object, or that it was deleted. */
  drop(key: string): void;
  /** `byServer` reads what exists now, and is asked only when `byCache` refuses. Rejects when it rejects. */
  admit(asked: Asked, byCache: Judge, byServer: () => Promise<Judge>): Promise<Verdict>;
}

export function createAdmissionGate(clock: Clock): AdmissionGate {
  const reservations = new Reservations();
  const unseen = (user: string) => reservations.unseen(user, clock.now());
  /** Of each list that is on its way: what was admitted for its user since then, shown by the cache or not. */
  const listing = new Set<{ readonly user: string; readonly admitted: Map<string, Amounts> }>();

  return {
    unseen,
    drop: (key) => reservations.drop(key),
    async admit({ key, user, amounts, dryRun }, byCache, byServer) {
      const reserve = (verdict: Verdict): Verdict => {
        // No await between the judgement and this: two admissions of this replica never share what is free.
        if (!verdict.allowed || dryRun) return verdict;
        reservations.add(key, user, amounts, clock.now());
        for (const list of listing) if (list.user === user) list.admitted.set(key, amounts);
        return verdict;
      };
      const quick = byCache(unseen(user));
      if (quick.allowed) return reserve(quick);
      // A list shows none of what is written after it was read, and the cache may show that before the list arrives.
      const list = { user, admitted: new Map(unseen(user)) };
      listing.add(list);
      try {
        const judge = await byServer();
        return reserve(judge(list.admitted));
      } finally {
        listing.delete(list);
      }
    },
  };
}
