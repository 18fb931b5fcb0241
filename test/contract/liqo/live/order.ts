/**
 * In which order writes took effect. An API server counts the revisions of its store, one for each write of any kind, and the answer to a write has
 * the one that it made; the time at which a request came says less, because a request that came first may wait for a webhook or be tried again. Pure.
 */
import type { Write } from './audit.ts';
import type { Place, Seen } from './capture.ts';

const answeredRevision = ({ response }: Write): number | undefined => {
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
 * The revision that a write made; undefined where its answer does not say. One that was there before the write came is of an earlier write: this one
 * changed nothing, or it took the last finalizer off, which is answered with the object as it was.
 */
function revisionsOf(writes: readonly Write[]): ReadonlyMap<Write, number | undefined> {
  const answered = writes
    .map((write) => ({ write, revision: answeredRevision(write) }))
    .filter((one): one is { write: Write; revision: number } => one.revision !== undefined);
  return new Map(
    writes.map((write) => {
      const own = answeredRevision(write);
      const isOld = answered.some(
        ({ write: other, revision }) => revision >= (own ?? 0) && other.answeredAt < write.at,
      );
      return [write, isOld ? undefined : own];
    }),
  );
}

/** Of a write without a revision, a deletion above all: it comes after what was written to its object, and after each write that both came and was answered before it. */
function placeOf(one: Write, revisions: ReadonlyMap<Write, number | undefined>): number {
  const uids = uidsOf(one);
  const before = [...revisions].filter(
    ([other]) =>
      (other.at < one.at && other.answeredAt < one.answeredAt) ||
      (other.at < one.answeredAt && uidsOf(other).some((uid) => uids.includes(uid))),
  );
  return Math.max(0, ...before.map(([, revision]) => revision ?? 0));
}

/** Another deletion of an object that is being deleted changes nothing, either. */
function isEnd({ verb, response }: Write): boolean {
  const { deletionTimestamp, finalizers = [] } = response?.metadata ?? {};
  return finalizers.length === 0 && (verb === 'delete' || deletionTimestamp !== undefined);
}

function atOneServer(all: readonly Seen[]): readonly Seen[] {
  const revisions = revisionsOf(all.map(({ write }) => write));
  const isUnsaid = ({ write }: Seen): boolean => revisions.get(write) === undefined;
  return all
    .filter((seen) => !isUnsaid(seen) || isEnd(seen.write) || answeredRevision(seen.write) === undefined)
    .map((seen) => ({ seen, place: revisions.get(seen.write) ?? placeOf(seen.write, revisions) }))
    .sort(
      (a, b) =>
        a.place - b.place ||
        Number(isUnsaid(a.seen)) - Number(isUnsaid(b.seen)) ||
        compare(a.seen.write.at, b.seen.write.at),
    )
    .map(({ seen }) => seen);
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** Of one API server by its revisions, without what changed nothing. Of two, whose revisions have nothing to do with each other, by time, as far as the order of each stays. */
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
