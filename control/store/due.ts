/**
 * Looks at what is due. Everything whose time comes has an item in one of a few partitions for all tenants, ordered by time and written in the
 * transaction that plans it: what a sweep costs depends on what is due and not on the number of tenants. Nothing is lost by a sweep that ends early: what it has
 * not looked at is there still, and the next one begins where it stopped.
 */
import { inParallel } from '#shared/async/in-parallel.ts';
import { codeOf } from '#shared/errors/app-error.ts';
import type { Clock } from '#shared/ports/clock.ts';
import type { Log } from '#shared/ports/log.ts';
import type { Item, Op, Page, Query, Store } from '../ports/store.ts';
import { type DueIndex, dueShards, key, sortableTime } from './keys.ts';

interface DueDeps {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
}

export interface DueItem<T> {
  readonly tenant: string;
  readonly item: Item<T>;
}

export interface DueWork<T> {
  readonly index: DueIndex;
  /** Removes or moves the item. One that throws is logged and stays for the next sweep. */
  readonly handle: (due: DueItem<T>, signal?: AbortSignal) => Promise<void>;
  /** Whose time comes until then. Default: now. */
  readonly until?: number;
}

export interface Swept {
  /** When the next item comes due. */
  readonly nextDueAt?: number;
  /** The signal ended it before everything due was looked at. */
  readonly unfinished?: true;
}

interface Stopped {
  /** The first sort key that was not looked at. */
  readonly at: string;
}

interface Range {
  readonly from: string;
  readonly to: string;
}

const pageSize = 100;
/** Of one shard. What is due of one tenant in one shard is looked at one after the other. */
const tenantsAtOnce = 4;
/** A tenant with more than this in a shard goes on after the others. */
const turn = 100;

/** Before every time and after the note of where a sweep stopped. */
const firstTime = '0';

const timeOf = ({ sk }: Item): number => Number(sk.slice(0, sk.indexOf('/')));
const tenantOf = ({ sk }: Item): string => sk.split('/')[1] ?? '';

export async function sweepDue<T>(deps: DueDeps, work: DueWork<T>, signal?: AbortSignal): Promise<Swept> {
  const shards = Array.from({ length: dueShards }, (_, shard) => shard);
  const swept: Swept[] = [];
  await inParallel(shards, dueShards, async (shard) => {
    swept.push(await sweepShard(deps, work, shard, signal));
  });
  const times = swept.flatMap(({ nextDueAt }) => nextDueAt ?? []);
  return {
    ...(times.length === 0 ? {} : { nextDueAt: Math.min(...times) }),
    ...(swept.some(({ unfinished }) => unfinished) ? { unfinished: true as const } : {}),
  };
}

async function sweepShard<T>(
  { store, clock, log }: DueDeps,
  { index, handle, until = clock.now() }: DueWork<T>,
  shard: number,
  signal?: AbortSignal,
): Promise<Swept> {
  const at = key.stopped(index, shard);
  const before = sortableTime(until + 1);
  const read = <V>(query: Omit<Query, 'partition'>): Promise<Page<Item<V>>> =>
    store.query<V>({ partition: at.pk, eventual: true, ...query }, signal);
  const nextAfter = (item: Item | undefined): Swept => (item ? { nextDueAt: timeOf(item) } : {});

  async function handleOne(item: Item<T>): Promise<void> {
    const tenant = tenantOf(item);
    try {
      signal?.throwIfAborted();
      await handle({ tenant, item }, signal);
    } catch (error) {
      signal?.throwIfAborted();
      // Another process was there first.
      if (codeOf(error) === 'version_conflict') return;
      log.error('something due failed and will be tried again', error, { tenant, due: item.sk });
    }
  }

  /** Where it has come to: behind `place` nothing was looked at. */
  let place = '';

  /** In turns: a tenant with more than one turn goes on after the others, from where it has come to. */
  async function pass(range: Range): Promise<void> {
    /** The last of each tenant that was looked at in this range: what failed is left to the next sweep. */
    const last = new Map<string, string>();
    let further = await round(range, last);
    while (further.size > 0) further = await round(range, last, further);
  }

  /**
   * A turn of every tenant, or of each of `only`, which have had one before. Answers with the tenants whose turn was full: there may be more of
   * theirs. Items before the place that the next of `only` has come to are not read again.
   */
  async function round(
    { from, to }: Range,
    last: Map<string, string>,
    only?: ReadonlySet<string>,
  ): Promise<ReadonlySet<string>> {
    const served = new Map<string, number>();
    const full = new Set<string>();
    const nextPlace = (): string | undefined => {
      if (only === undefined) return from;
      const places = [...only].filter((tenant) => !full.has(tenant)).map((tenant) => last.get(tenant) ?? from);
      return places.length === 0 ? undefined : places.reduce((a, b) => (a < b ? a : b));
    };
    let query: Pick<Query, 'from' | 'cursor'> = { from: nextPlace() ?? from };
    for (;;) {
      const page = await read<T>({ ...query, to, limit: pageSize });
      place = page.items[0]?.sk ?? place;
      const turns = new Map<string, Item<T>[]>();
      for (const item of page.items) {
        const tenant = tenantOf(item);
        if (only?.has(tenant) === false) continue;
        const count = served.get(tenant) ?? 0;
        if (count >= turn || item.sk <= (last.get(tenant) ?? '')) continue;
        served.set(tenant, count + 1);
        if (count + 1 === turn) full.add(tenant);
        last.set(tenant, item.sk);
        turns.set(tenant, [...(turns.get(tenant) ?? []), item]);
      }
      await inParallel([...turns.values()], tenantsAtOnce, async (items) => {
        for (const item of items) await handleOne(item);
      });
      const next = nextPlace();
      if (page.cursor === undefined || next === undefined) return full;
      query = next > (page.items.at(-1)?.sk ?? next) ? { from: next } : { ...query, cursor: page.cursor };
    }
  }

  /** Of two sweeps at a time either position will do. */
  const note = (op: Op): Promise<void> => store.transact([op]).catch(() => undefined);
  let stopped: Item<Stopped> | undefined;
  try {
    const { items } = await read<Stopped>({ limit: 2 });
    stopped = items.find(({ sk }) => sk === at.sk);
    const soonest = items.find(({ sk }) => sk !== at.sk);
    const work = soonest !== undefined && soonest.sk < before;
    const start = stopped && stopped.value.at < before ? stopped.value.at : before;
    if (work && start < before) await pass({ from: start, to: before });
    if (work) await pass({ from: firstTime, to: start });
    if (stopped) await note({ op: 'delete', ...at, ifVersion: stopped.version });
    return nextAfter(work ? (await read({ from: before, limit: 1 })).items[0] : soonest);
  } catch (error) {
    if (!signal?.aborted) throw error;
    const value: Stopped = { at: place };
    // The signal is over: this is what the reserve of its deadline is for.
    if (place !== '')
      await note(stopped ? { op: 'update', ...at, value, ifVersion: stopped.version } : { op: 'put', ...at, value });
    return { unfinished: true };
  }
}
