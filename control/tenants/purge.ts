/**
 * Removes everything of a tenant that is deleted, once its peerings have ended. Other tenants are told first, and a tombstone comes last, so that a purge
 * that a crash has cut short is done again from its beginning.
 */
import { codeOf } from '#shared/errors/app-error.ts';
import type { Log } from '#shared/ports/log.ts';
import type { Principal } from '../access/caller.ts';
import { systemPrincipal } from '../audit/record.ts';
import { unpublishOps } from '../directory/directory.ts';
import { countOps } from '../limits/capacity.ts';
import type { ClusterRecord } from '../model/cluster.ts';
import type { ControlDeps } from '../model/deps.ts';
import type { DirectoryEntry } from '../model/directory-entry.ts';
import type { PeeringRecord } from '../model/peering-records.ts';
import type { KnownTenants, TenantRecord } from '../model/tenant.ts';
import type { Op } from '../ports/store.ts';
import { everyItem } from '../store/every-item.ts';
import { key, partition } from '../store/keys.ts';
import { type Holding, holdings, partitionOf, perCluster, perPartner } from './partitions.ts';
import { dropPlanned } from './planned.ts';

/** Tombstone: which principal deleted which tenant, and when. Holds none of the tenant's data. */
interface Tombstone {
  readonly name: string;
  readonly createdAt: number;
  readonly deletedAt: number;
  readonly by: string;
}

interface Asking {
  readonly consumerTenant: string;
}

const batch = 50;

export interface PurgeDeps extends Pick<ControlDeps, 'store' | 'clock'> {
  readonly log: Log;
  readonly unpeer: (actor: Principal, id: string, signal?: AbortSignal) => Promise<void>;
}

/** Does nothing for a tenant that is gone. */
export function createPurge(
  { store, clock, log, unpeer }: PurgeDeps,
  known: KnownTenants,
): (tenant: string, signal?: AbortSignal) => Promise<void> {
  /** Peerings with other tenants must not wait at their side for clusters that no agent will ever report for. */
  async function letGo(tenant: string, signal?: AbortSignal): Promise<void> {
    for await (const { pk, sk, value, version } of everyItem<ClusterRecord>(
      store,
      { partition: partition.clusters(tenant) },
      signal,
    )) {
      if (value.state === 'left') continue;
      const left: ClusterRecord = { ...value, state: 'left', leftAt: clock.now() };
      const ops: Op[] = [
        { op: 'update', pk, sk, value: left, ifVersion: version },
        ...countOps(tenant, 'clusters', value, left),
      ];
      await store.transact(ops, [], signal);
    }
    for await (const { sk, value } of everyItem<PeeringRecord>(
      store,
      { partition: partition.peerings(tenant) },
      signal,
    )) {
      if (value.spec.across && value.state.removal?.finishedAt === undefined)
        await unpeer(systemPrincipal(tenant), sk, signal);
    }
  }

  async function pathsOf(tenant: string, holding: Holding, signal?: AbortSignal): Promise<string[]> {
    if (perPartner(holding))
      return (await partners(tenant, signal)).map((other) => partitionOf(tenant, holding, other));
    if (!perCluster(holding)) return [partitionOf(tenant, holding)];
    const paths: string[] = [];
    for await (const { sk } of everyItem(store, { partition: partition.clusters(tenant) }, signal)) {
      paths.push(partitionOf(tenant, holding, sk));
    }
    return paths;
  }

  /** Tenants that asked this one, or had peerings with it. */
  async function partners(tenant: string, signal?: AbortSignal): Promise<readonly string[]> {
    const found = new Set<string>();
    for await (const { value } of everyItem<PeeringRecord>(store, { partition: partition.peerings(tenant) }, signal)) {
      if (value.spec.across)
        for (const side of [value.spec.across.consumer, value.spec.across.provider]) found.add(side);
    }
    for await (const { value } of everyItem<Asking>(store, { partition: partition.inbox(tenant) }, signal))
      found.add(value.consumerTenant);
    return [...found];
  }

  /** A report of an agent may still write meanwhile, hence repeated until only what must stay is found. */
  async function empty(
    tenant: string,
    { path, stays }: { readonly path: string; readonly stays: (value: unknown) => boolean },
    signal?: AbortSignal,
  ): Promise<void> {
    for (;;) {
      const ops: Op[] = [];
      for await (const { pk, sk, version, value } of everyItem<unknown>(store, { partition: path }, signal)) {
        if (stays(value)) continue;
        const item = { pk, sk, value };
        ops.push({ op: 'delete', pk, sk, ifVersion: version }, ...(await dropPlanned(store, tenant, item, signal)));
        if (ops.length >= batch) break;
      }
      if (ops.length === 0) return;
      await store.transact(ops, [], signal).catch((error: unknown) => {
        if (codeOf(error) !== 'version_conflict') throw error;
      });
    }
  }

  return async (tenant, signal) => {
    const at = key.tenant(tenant);
    const record = (await store.get<TenantRecord>(at.pk, at.sk, signal))?.value;
    // Another process came to the end of it.
    if (!record) return;
    await letGo(tenant, signal);
    // What everybody sees goes first, together with the tenant's own entry.
    for await (const { value, version } of everyItem<DirectoryEntry>(
      store,
      { partition: partition.directory(tenant) },
      signal,
    )) {
      await store.transact(unpublishOps(value, version), [], signal);
    }
    for (const holding of holdings) {
      if (holding.path === '') continue;
      for (const path of await pathsOf(tenant, holding, signal))
        await empty(tenant, { path, stays: perPartner(holding) ? neededElsewhere : () => false }, signal);
    }
    const tombstone: Tombstone = {
      name: tenant,
      createdAt: record.createdAt,
      deletedAt: clock.now(),
      by: record.deletion?.by ?? 'system',
    };
    const rest: Op[] = [];
    for await (const { pk, sk, version } of everyItem(store, { partition: `t/${tenant}` }, signal)) {
      rest.push({ op: 'delete', pk, sk, ifVersion: version });
    }
    for (const listed of [key.tenantName(tenant), key.deleting(tenant)]) {
      const name = await store.get(listed.pk, listed.sk, signal);
      if (name) rest.push({ op: 'delete', ...listed, ifVersion: name.version });
    }
    // The name is never given again, hence neither is the stream. Before the tombstone, so that a retry after a crash in between comes here again.
    await store.endStream(tenant, signal);
    await store.transact([...rest, { op: 'put', ...key.tombstone(tenant), value: tombstone }], [], signal);
    known.forget(tenant);
    log.info('a tenant is deleted', { tenant });
  };
}

/** A peering across tenants that the other side has not finished: without it, that side would never learn that it may. */
const neededElsewhere = (value: unknown): boolean =>
  typeof value === 'object' &&
  value !== null &&
  'state' in value &&
  (value as PeeringRecord).state.removal?.finishedAt === undefined;
