/** Lists of clusters: their records in one query and when each was last seen in another one of the same range; by a label, in reads of many. */
import { type LabelRequirement, selects } from '#shared/domain/label-selector.ts';
import { type Caller, mustHave } from '../access/caller.ts';
import { pageByLabel } from '../labels/label-index.ts';
import type { ClusterRecord, ClusterView, SeenRecord } from '../model/cluster.ts';
import type { ControlDeps, PageRequest } from '../model/deps.ts';
import type { Item, Page } from '../ports/store.ts';
import { everyItem } from '../store/every-item.ts';
import { heardBetween, key, partition } from '../store/keys.ts';
import { pageOfMany } from '../store/pages.ts';
import { clusterView } from './cluster.ts';

export interface ClusterFilter extends PageRequest {
  readonly includeLeft?: boolean;
  readonly labels?: readonly LabelRequirement[];
}

type Found = Item<ClusterRecord> | undefined;

/** Two for each cluster of the longest page. */
const heardAtOnce = 400;

export async function listClusters(
  { store, clock }: Pick<ControlDeps, 'store' | 'clock'>,
  caller: Caller,
  filter: ClusterFilter,
  signal?: AbortSignal,
): Promise<Page<ClusterView>> {
  mustHave(caller, 'clusters:read');
  const { tenant } = caller;
  const { includeLeft = false, labels: wanted = [] } = filter;
  const fits = ({ state, labels }: ClusterRecord): boolean =>
    (state === 'joined' || includeLeft) && selects(wanted, labels);

  /** What was seen within the last second may be missing: a cluster is offline after minutes. */
  const eventual = true;

  /** In the order of their ids, of one page of them: its range has no others but what is left of clusters that are gone. */
  async function seenOfRange(ids: readonly string[]): Promise<readonly (Item<SeenRecord> | undefined)[]> {
    const [first, last] = [ids[0], ids.at(-1)];
    if (first === undefined || last === undefined) return [];
    const range = { partition: partition.heard(tenant), ...heardBetween(first, last), atOnce: heardAtOnce, eventual };
    const bySk = new Map<string, Item<SeenRecord>>();
    for await (const item of everyItem<SeenRecord>(store, range, signal)) bySk.set(item.sk, item);
    return ids.map((id) => bySk.get(key.seen(tenant, id).sk));
  }

  const seenOfMany = (ids: readonly string[]): Promise<readonly (Item<SeenRecord> | undefined)[]> =>
    store.getMany<SeenRecord>({ keys: ids.map((id) => key.seen(tenant, id)), eventual }, signal);

  const viewsBy = (seenOf: typeof seenOfMany) => async (items: readonly Found[]) => {
    const shown = items.filter((item) => item !== undefined).filter(({ value }) => fits(value));
    const seen = await seenOf(shown.map(({ value }) => value.id));
    const now = clock.now();
    const byItem = new Map(
      shown.map((item, i) => [item, clusterView(item.value, item.version, seen[i]?.value, now)] as const),
    );
    return items.map((item) => item && byItem.get(item));
  };

  const [first, ...others] = wanted;
  if (first === undefined) {
    const query = { partition: partition.clusters(tenant) };
    return pageOfMany<ClusterRecord, ClusterView>(store, query, filter, viewsBy(seenOfRange), signal);
  }
  const views = viewsBy(seenOfMany);
  return pageByLabel(
    store,
    { tenant, kind: 'cluster' },
    [first, ...others],
    filter,
    async (ids) => {
      const keys = ids.map((id) => key.cluster(tenant, id));
      return views(await store.getMany<ClusterRecord>({ keys }, signal));
    },
    signal,
  );
}
