/**
 * Clusters and peerings as they are now: read once, then kept by the event feed (a long poll), which says what to read again. What no event tells
 * - when a cluster was last seen, the round trip of a link - a slow poll of the lists brings.
 */
import { signal } from '@preact/signals';
import type { Cluster, Event, Peering } from '#shared/api-client/broker-api.ts';
import { all, api, type Holder, Refused, Unreachable } from './api.ts';

type Ids<T> = ReadonlyMap<string, T>;

export const clusters = signal<Ids<Cluster>>(new Map());
export const peerings = signal<Ids<Peering>>(new Map());
/** Newest last; of the last 24 hours. */
export const events = signal<readonly Event[]>([]);
/** `lost` since that time: nothing on the page is newer. */
export const connection = signal<'loading' | 'live' | { readonly lostAt: number }>('loading');
/** Moves every five seconds: times on the page are written again. */
export const now = signal(Date.now());

const keptEvents = 5_000;
/** Beyond this many at once, the lists are read instead. */
const fewSubjects = 20;
const small = 400;

setInterval(() => {
  now.value = Date.now();
}, 5_000);

async function readLists(abort: AbortSignal): Promise<void> {
  const options = { signal: abort };
  const [foundClusters, foundPeerings] = await Promise.all([
    all((query) => api.listClusters({ query: { ...query, includeLeft: true } }, options)),
    all((query) => api.listPeerings({ query: { ...query, includeGone: true } }, options)),
  ]);
  clusters.value = new Map(foundClusters.map((cluster) => [cluster.name, cluster]));
  peerings.value = new Map(foundPeerings.map((peering) => [peering.id, peering]));
}

const isMissing = (error: unknown): boolean => error instanceof Refused && error.problem.status === 404;

/** Reads one again; the one that is gone leaves the page. */
async function refreshPeering(id: string, abort?: AbortSignal): Promise<Peering | undefined> {
  const found = await api.getPeering({ path: { peering: id } }, abort && { signal: abort }).catch((error: unknown) => {
    if (isMissing(error)) return undefined;
    throw error;
  });
  peerings.value = replaced(peerings.value, id, found);
  return found;
}

export async function refreshCluster(name: string, abort?: AbortSignal): Promise<Cluster | undefined> {
  const found = await api
    .getCluster({ path: { cluster: name } }, abort && { signal: abort })
    .catch((error: unknown) => {
      if (isMissing(error)) return undefined;
      throw error;
    });
  clusters.value = replaced(clusters.value, name, found);
  return found;
}

export const put = (peering: Peering): void => {
  peerings.value = replaced(peerings.value, peering.id, peering);
};

function replaced<T>(map: Ids<T>, id: string, value: T | undefined): Ids<T> {
  const copy = new Map(map);
  if (value === undefined) copy.delete(id);
  else copy.set(id, value);
  return copy;
}

async function readSubjects(found: readonly Event[], abort: AbortSignal): Promise<void> {
  const subjects = [...new Set(found.map(({ subject }) => subject))];
  if (subjects.length > fewSubjects) return readLists(abort);
  for (const subject of subjects) {
    const [kind, id = ''] = subject.split('/');
    if (kind === 'peering') await refreshPeering(id, abort);
    if (kind === 'cluster') await refreshCluster(id, abort);
  }
}

const sleep = (ms: number, abort: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      abort.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    abort.addEventListener('abort', end);
  });

/** Ends with the abort. */
async function untilAborted(abort: AbortSignal, work: () => Promise<void>): Promise<void> {
  while (!abort.aborted) {
    try {
      await work();
      if (abort.aborted) return;
      connection.value = 'live';
    } catch (error) {
      if (abort.aborted) return;
      const before = connection.value;
      connection.value = typeof before === 'object' ? before : { lostAt: Date.now() };
      // A cursor that has expired, or a broker that is away: begin again.
      await sleep(error instanceof Unreachable ? 1_000 : 5_000, abort);
    }
  }
}

async function follow(abort: AbortSignal): Promise<void> {
  let cursor: string | undefined;
  /** How much of the beginning is done: the lists, then the events that are in them already. */
  let begun: 'nothing' | 'lists' | 'all' = 'nothing';
  await untilAborted(abort, async () => {
    if (begun === 'nothing') {
      await readLists(abort);
      connection.value = 'live';
      begun = 'lists';
    }
    const wait = begun === 'all' && !document.hidden ? 20 : 0;
    const page = await api
      .listEvents({ query: { limit: 200, cursor, wait } }, { signal: abort, timeoutMs: 30_000, once: true })
      .catch((error: unknown) => {
        cursor = undefined;
        begun = 'nothing';
        throw error;
      });
    cursor = page.cursor;
    const have = new Set(events.value.map(({ id }) => id));
    const fresh = page.items.filter(({ id }) => !have.has(id));
    if (fresh.length > 0) events.value = [...events.value, ...fresh].slice(-keptEvents);
    if (begun === 'all' && fresh.length > 0) await readSubjects(fresh, abort);
    if (begun === 'lists' && page.items.length === 0) {
      begun = 'all';
      // Something may have happened between the lists and the end of the feed.
      const since = Date.now() - 30_000;
      await readSubjects(
        events.value.filter(({ time }) => Date.parse(time) > since),
        abort,
      );
    }
    if (document.hidden) await sleep(5_000, abort);
  });
}

async function pollSlowly(abort: AbortSignal): Promise<void> {
  for (;;) {
    await sleep(peerings.value.size + clusters.value.size > small ? 60_000 : 10_000, abort);
    if (abort.aborted) return;
    if (!document.hidden) await readLists(abort).catch(() => undefined);
  }
}

let life: AbortController | undefined;

/** What a login sees, a logout takes away. */
export function watch(who: Holder | undefined): void {
  life?.abort();
  life = undefined;
  clusters.value = new Map();
  peerings.value = new Map();
  events.value = [];
  connection.value = 'loading';
  if (who?.kind !== 'member') return;
  life = new AbortController();
  void follow(life.signal);
  void pollSlowly(life.signal);
}
