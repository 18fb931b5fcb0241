/** The directory: clusters that their tenants chose to show to all tenants of the broker, as those tenants describe them. */
import { AppError } from '#shared/errors/app-error.ts';
import { type Caller, mustHave } from '../access/caller.ts';
import { auditOps, eventOf } from '../audit/record.ts';
import { hasLabels } from '../input/labels.ts';
import type { ClusterRecord } from '../model/cluster.ts';
import type { ControlDeps, PageRequest } from '../model/deps.ts';
import type { DirectoryEntry, NewEntry } from '../model/directory-entry.ts';
import type { Item, Op, Page } from '../ports/store.ts';
import { directoryShards, key, partition } from '../store/keys.ts';
import { mergedPageOf } from '../store/merged-pages.ts';
import { pageOf } from '../store/pages.ts';
import { earlier, remembered } from '../store/repeat.ts';
import { untilWritten } from '../store/until-written.ts';
import { checkEntry } from './entry.ts';

interface DirectoryFilter extends PageRequest {
  readonly region?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly class?: string;
  /** Only the caller's own. */
  readonly mine?: boolean;
}

interface Published {
  readonly entry: DirectoryEntry;
  readonly created: boolean;
}

export interface Directory {
  /** Publishes a cluster of the caller's tenant, or replaces its description (`created: false`). */
  publish(caller: Caller, input: NewEntry, signal?: AbortSignal): Promise<Published>;
  /** From then on no tenant sees it or can ask for it. Peerings stay. */
  unpublish(caller: Caller, cluster: string, signal?: AbortSignal): Promise<DirectoryEntry>;
  list(caller: Caller, filter?: DirectoryFilter, signal?: AbortSignal): Promise<Page<DirectoryEntry>>;
  get(caller: Caller, tenant: string, cluster: string, signal?: AbortSignal): Promise<DirectoryEntry>;
}

const published = Array.from({ length: directoryShards }, (_, shard) => partition.published(shard));

/** The tenant's own entry and the one for everybody are written together, hence have one version. */
export const unpublishOps = ({ tenant, cluster }: DirectoryEntry, version: number): Op[] => [
  { op: 'delete', ...key.directory(tenant, cluster), ifVersion: version },
  { op: 'delete', ...key.published(tenant, cluster), ifVersion: version },
];

export function createDirectory(deps: Pick<ControlDeps, 'store' | 'clock' | 'ids'>): Directory {
  const { store, clock } = deps;

  const at = (tenant: string, cluster: string, signal?: AbortSignal): Promise<Item<DirectoryEntry> | undefined> => {
    const { pk, sk } = key.published(tenant, cluster);
    return store.get<DirectoryEntry>(pk, sk, signal);
  };

  const missing = (tenant: string, cluster: string): AppError =>
    new AppError('not_found', `the directory has no cluster ${cluster} of tenant ${tenant}`, {
      detail: { tenant, cluster },
    });

  async function publishOnce(caller: Caller, input: NewEntry, signal?: AbortSignal) {
    const checked = checkEntry(input);
    const { tenant } = caller;
    const clusterAt = key.cluster(tenant, checked.cluster);
    const [cluster, before] = await Promise.all([
      store.get<ClusterRecord>(clusterAt.pk, clusterAt.sk, signal),
      at(tenant, checked.cluster, signal),
    ]);
    if (cluster?.value.state !== 'joined') {
      throw new AppError('cluster_unknown', `no cluster ${checked.cluster} has joined`, {
        detail: { cluster: checked.cluster },
      });
    }
    const now = clock.now();
    const entry: DirectoryEntry = { tenant, ...checked, publishedAt: before?.value.publishedAt ?? now, updatedAt: now };
    const published: Published = { entry, created: before === undefined };
    const subject = `cluster/${checked.cluster}`;
    const where = key.published(tenant, checked.cluster);
    await store.transact(
      [
        ...[key.directory(tenant, checked.cluster), where].map(
          (to): Op =>
            before
              ? { op: 'update', ...to, value: entry, ifVersion: before.version }
              : { op: 'put', ...to, value: entry },
        ),
        { op: 'check', ...clusterAt, ifVersion: cluster.version },
        ...auditOps(deps, caller, {
          action: 'directory.publish',
          subject,
          ...(before ? { before: before.value } : {}),
          after: entry,
        }),
        ...remembered(caller, published),
      ],
      [eventOf(deps, tenant, 'directory.published', subject, { region: entry.region, classes: entry.classes })],
      signal,
    );
    return published;
  }

  return {
    async publish(caller, input, signal) {
      mustHave(caller, 'directory:write');
      return earlier<Published>(caller) ?? untilWritten(() => publishOnce(caller, input, signal), signal);
    },

    async unpublish(caller, cluster, signal) {
      mustHave(caller, 'directory:write');
      return untilWritten(async () => {
        const item = await at(caller.tenant, cluster, signal);
        if (!item) throw missing(caller.tenant, cluster);
        const subject = `cluster/${cluster}`;
        await store.transact(
          [
            ...unpublishOps(item.value, item.version),
            ...auditOps(deps, caller, { action: 'directory.unpublish', subject, before: item.value }),
          ],
          [eventOf(deps, caller.tenant, 'directory.unpublished', subject)],
          signal,
        );
        return item.value;
      }, signal);
    },

    async list(caller, filter = {}, signal) {
      mustHave(caller, 'directory:read');
      const fits = ({ region, labels, classes }: DirectoryEntry): boolean =>
        (filter.region === undefined || filter.region === region) &&
        (filter.class === undefined || classes.includes('*') || classes.includes(filter.class)) &&
        hasLabels(labels, filter.labels ?? {});
      const view = ({ value }: Item<DirectoryEntry>) => (fits(value) ? value : undefined);
      return filter.mine
        ? pageOf(store, { partition: partition.directory(caller.tenant) }, filter, view, signal)
        : mergedPageOf(store, published, filter, view, signal);
    },

    async get(caller, tenant, cluster, signal) {
      mustHave(caller, 'directory:read');
      const item = await at(tenant, cluster, signal);
      if (!item) throw missing(tenant, cluster);
      return item.value;
    },
  };
}
