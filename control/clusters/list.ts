/** Lists of clusters: their records in one query, or by a label; when each was last seen in one read of many. */
import { type LabelRequirement, selects } from '#shared/domain/label-selector.ts';
import { type Caller, mustHave } from '../access/caller.ts';
import { pageByLabel } from '../labels/label-index.ts';
import type { ClusterRecord, ClusterView, SeenRecord } from '../model/cluster.ts';
import type { ControlDeps, PageRequest } from '../model/deps.ts';
import type { Item, Page } from '../ports/store.ts';
import { key, partition } from '../store/keys.ts';
import { pageOfMany } from '../store/pages.ts';
import { clusterView } from './cluster.ts';

export interface ClusterFilter extends PageRequest {
  readonly includeLeft?: boolean;
  readonly labels?: readonly LabelRequirement[];
}

type Found = Item<ClusterRecord> | undefined;

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
  async function views(items: readonly Found[]): Promise<readonly (ClusterView | undefined)[]> {
    const shown = items.filter((item) => item !== undefined).filter(({ value }) => fits(value));
    const keys = shown.map(({ value }) => key.seen(tenant, value.id));
    const found = await store.getMany<SeenRecord>({ keys, eventual: true }, signal);
    const now = clock.now();
    const byItem = new Map(
      shown.map((item, i) => [item, clusterView(item.value, item.version, found[i]?.value, now)] as const),
    );
    return items.map((item) => item && byItem.get(item));
  }

  const [first, ...others] = wanted;
  if (first === undefined) return pageOfMany(store, { partition: partition.clusters(tenant) }, filter, views, signal);
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
