/**
 * In which order writes took effect. An API server counts the revisions of its store, one for each write of any kind, and the answer to a write has
 * the one that it made; the time at which a request came says less, because a request that came first may wait for a webhook or be tried again. Pure.
 */
import type { Write } from './audit.ts';
import type { Place, Seen } from './capture.ts';

interface Placed {
  readonly seen: Seen;
  readonly revision: number;
}

const revisionOf = ({ response }: Write): number | undefined => {
  const { resourceVersion } = response?.metadata ?? {};
  return resourceVersion === undefined ? undefined : Number(resourceVersion);
};

/** Of the objects that it was about. */
const uidsOf = ({ response }: Write): readonly string[] =>
  [
    response?.metadata?.uid,
    response?.details?.uid,
    ...(response?.items ?? []).map(({ metadata }) => metadata?.uid),
  ].filter((uid) => uid !== undefined);

/**
 * The answer to a deletion that takes effect at once has no revision. It comes after all that was written to its object, and after each write that both came and
 * was answered before it.
 */
function revisionOfDeletion(one: Write, known: readonly Write[]): number {
  const uids = uidsOf(one);
  const before = known.filter(
    (other) =>
      (other.at < one.at && other.answeredAt < one.answeredAt) || uidsOf(other).some((uid) => uids.includes(uid)),
  );
  return Math.max(0, ...before.map((other) => revisionOf(other) ?? 0));
}

function atOneServer(all: readonly Seen[]): readonly Seen[] {
  const known = all.map(({ write }) => write).filter((write) => revisionOf(write) !== undefined);
  const placed: Placed[] = all.map((seen) => ({
    seen,
    revision: revisionOf(seen.write) ?? revisionOfDeletion(seen.write, known),
  }));
  const isDeletion = ({ seen }: Placed): number => (revisionOf(seen.write) === undefined ? 1 : 0);
  const byTime = (a: Placed, b: Placed): number => compare(a.seen.write.at, b.seen.write.at);
  return placed
    .sort((a, b) => a.revision - b.revision || isDeletion(a) - isDeletion(b) || byTime(a, b))
    .map(({ seen }) => seen);
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** Of one API server by its revisions. Of two, whose revisions have nothing to do with each other, by time, as far as the order of each stays. */
export function inOrder(all: readonly Seen[]): readonly Seen[] {
  const places = [...new Set(all.map(({ at }) => at))];
  const timed = places.flatMap((place: Place) => {
    let latest = '';
    return atOneServer(all.filter(({ at }) => at === place)).map((seen) => {
      latest = seen.write.at > latest ? seen.write.at : latest;
      return { seen, time: latest };
    });
  });
  return timed.sort((a, b) => compare(a.time, b.time)).map(({ seen }) => seen);
}
