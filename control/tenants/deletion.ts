/**
 * The end of a tenant. Asked for in one request and confirmed in another with the tenant's name; from then on nothing can be changed. Peerings
 * must have ended, or `force` ends them; when they have, everything is removed, and a tombstone keeps the name from being given again. Every
 * step can be repeated: the sweep continues what a crashed process left undone.
 */
import { AppError, codeOf } from '#shared/errors/app-error.ts';
import type { Log } from '#shared/ports/log.ts';
import { type Caller, mustHave, type OperatorCaller, type Principal } from '../access/caller.ts';
import { newSecret, sameText, sha256Hex } from '../access/secrets.ts';
import { auditOps, eventOf, systemPrincipal } from '../audit/record.ts';
import { unpublishOps } from '../directory/directory.ts';
import { countOps } from '../limits/capacity.ts';
import type { ClusterRecord } from '../model/cluster.ts';
import type { ControlDeps } from '../model/deps.ts';
import type { DirectoryEntry } from '../model/directory-entry.ts';
import type { PeeringRecord } from '../model/peering-records.ts';
import type { KnownTenants, TenantRecord } from '../model/tenant.ts';
import { hasEnded } from '../peerings/core/ended.ts';
import type { Item, Op } from '../ports/store.ts';
import { everyItem } from '../store/every-item.ts';
import { key, partition } from '../store/keys.ts';
import { earlier, remembered } from '../store/repeat.ts';
import { type Holding, holdings, partitionOf, perCluster, perPartner } from './partitions.ts';
import { dropPlanned } from './planned.ts';

interface DeletionRequest {
  /** Shown once; to be sent back with the tenant's name. */
  readonly confirmation: string;
  readonly expiresAt: number;
  /** Peerings that have not ended: without `force`, the deletion is refused while there are any. */
  readonly peerings: readonly string[];
}

interface DeletionState {
  readonly state: 'deleting' | 'deleted';
  /** Peerings that still have to end. */
  readonly peerings: readonly string[];
}

export interface Deletion {
  request(caller: Caller, signal?: AbortSignal): Promise<DeletionRequest>;
  confirm(
    caller: Caller,
    input: { readonly name: string; readonly confirmation: string; readonly force?: boolean },
    signal?: AbortSignal,
  ): Promise<DeletionState>;
  /** By an operator, confirmed by repeating the name. */
  byOperator(
    operator: OperatorCaller,
    tenant: string,
    options: { readonly confirm: string; readonly force?: boolean },
    signal?: AbortSignal,
  ): Promise<DeletionState>;
  /** Continues what is under way; how many tenants still have peerings to end. */
  sweep(signal?: AbortSignal): Promise<number>;
}

interface DesiredCopy {
  readonly hash: string;
  readonly by: string;
}

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

const wishLifeMs = 15 * 60_000;
const batch = 50;

interface DeletionDeps extends Pick<ControlDeps, 'store' | 'clock' | 'ids'> {
  readonly log: Log;
  readonly unpeer: (actor: Principal, id: string, signal?: AbortSignal) => Promise<void>;
}

export function createDeletion(deps: DeletionDeps, known: KnownTenants): Deletion {
  const { store, clock, ids, log, unpeer } = deps;

  async function load(tenant: string, signal?: AbortSignal): Promise<Item<TenantRecord>> {
    const { pk, sk } = key.tenant(tenant);
    const item = await store.get<TenantRecord>(pk, sk, signal);
    if (!item) throw new AppError('not_found', `there is no tenant ${JSON.stringify(tenant)}`, { detail: { tenant } });
    return item;
  }

  async function livePeerings(tenant: string, signal?: AbortSignal): Promise<string[]> {
    const live: string[] = [];
    for await (const { sk, value } of everyItem<PeeringRecord>(
      store,
      { partition: partition.peerings(tenant) },
      signal,
    )) {
      if (!hasEnded(value)) live.push(sk);
    }
    return live;
  }

  async function start(
    actor: Principal,
    item: Item<TenantRecord>,
    force: boolean,
    signal?: AbortSignal,
  ): Promise<DeletionState> {
    const { tenant } = actor;
    const live = await livePeerings(tenant, signal);
    if (live.length > 0 && !force) {
      throw new AppError(
        'in_use',
        `the tenant has ${live.length} peerings that have not ended; unpeer them first, or delete with force`,
        { detail: { peerings: live.slice(0, 100) } },
      );
    }
    if (item.value.state !== 'deleting') {
      const next: TenantRecord = {
        ...item.value,
        state: 'deleting',
        deletion: { startedAt: clock.now(), by: actor.principal },
      };
      const subject = `tenant/${tenant}`;
      await store.transact(
        [
          { op: 'update', ...key.tenant(tenant), value: next, ifVersion: item.version },
          // Where sweeps look: they read no tenant that is not being deleted.
          { op: 'put', ...key.deleting(tenant), value: {} },
          ...auditOps(deps, actor, { action: 'tenant.delete', subject, after: { force, peerings: live.length } }),
          ...remembered(actor, true),
        ],
        [eventOf(deps, tenant, 'tenant.deletion-started', subject)],
        signal,
      );
      known.forget(tenant);
      log.info('the deletion of a tenant begins', { tenant, by: actor.principal });
    }
    return advance(tenant, signal);
  }

  /** One step further; removes everything once no peering is left to end. */
  async function advance(tenant: string, signal?: AbortSignal): Promise<DeletionState> {
    const live = await livePeerings(tenant, signal);
    for (const id of live) {
      await unpeer(systemPrincipal(tenant), id, signal).catch((error: unknown) => {
        signal?.throwIfAborted();
        log.warn('a peering of a tenant that is deleted could not be ended yet', {
          tenant,
          peering: id,
          code: codeOf(error),
        });
      });
    }
    const left = live.length === 0 ? live : await livePeerings(tenant, signal);
    if (left.length > 0) return { state: 'deleting', peerings: left };
    await purge(tenant, signal);
    return { state: 'deleted', peerings: [] };
  }

  async function purge(tenant: string, signal?: AbortSignal): Promise<void> {
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
  }

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

  return {
    async request(caller, signal) {
      mustHave(caller, 'tenant:delete');
      const { tenant } = caller;
      const done = earlier<DeletionRequest>(caller);
      if (done) return done;
      await load(tenant, signal);
      const confirmation = `del_${newSecret(ids)}`;
      const at = key.deletion(tenant);
      const before = await store.get(at.pk, at.sk, signal);
      const expiresAt = clock.now() + wishLifeMs;
      const value: DesiredCopy = { hash: sha256Hex(confirmation), by: caller.principal };
      const asked: DeletionRequest = { confirmation, expiresAt, peerings: await livePeerings(tenant, signal) };
      await store.transact(
        [
          before
            ? { op: 'update', ...at, value, expiresAt, ifVersion: before.version }
            : { op: 'put', ...at, value, expiresAt },
          ...auditOps(deps, caller, { action: 'tenant.request-deletion', subject: `tenant/${tenant}` }),
          ...remembered(caller, asked),
        ],
        [],
        signal,
      );
      return asked;
    },

    async confirm(caller, { name, confirmation, force = false }, signal) {
      mustHave(caller, 'tenant:delete');
      const { tenant } = caller;
      // The confirmation may have expired since.
      if (earlier<true>(caller)) return advance(tenant, signal);
      const item = await load(tenant, signal);
      if (name !== tenant) {
        throw new AppError(
          'fields_conflict',
          `name is ${JSON.stringify(name)}; to confirm, give the name of the tenant`,
          {
            detail: { field: 'name', value: name },
          },
        );
      }
      const at = key.deletion(tenant);
      const wish = await store.get<DesiredCopy>(at.pk, at.sk, signal);
      if (!wish || !sameText(wish.value.hash, sha256Hex(confirmation))) {
        throw new AppError(
          'fields_conflict',
          'confirmation is not the one given within the last 15 minutes; ask for the deletion again',
          { detail: { field: 'confirmation' } },
        );
      }
      return start(caller, item, force, signal);
    },

    async byOperator(operator, tenant, { confirm, force = false }, signal) {
      const item = await load(tenant, signal);
      if (confirm !== tenant) {
        throw new AppError('fields_conflict', `confirm is ${JSON.stringify(confirm)}; repeat the name of the tenant`, {
          detail: { field: 'confirm', value: confirm },
        });
      }
      return start({ ...operator, tenant }, item, force, signal);
    },

    async sweep(signal) {
      let waiting = 0;
      for await (const { sk: tenant } of everyItem(store, { partition: partition.deleting }, signal)) {
        try {
          if ((await advance(tenant, signal)).state === 'deleting') waiting += 1;
        } catch (error) {
          signal?.throwIfAborted();
          waiting += 1;
          log.error('the deletion of a tenant failed and will be tried again', error, { tenant });
        }
      }
      return waiting;
    },
  };
}

/** A peering across tenants that the other side has not finished: without it, that side would never learn that it may. */
const neededElsewhere = (value: unknown): boolean =>
  typeof value === 'object' &&
  value !== null &&
  'state' in value &&
  (value as PeeringRecord).state.removal?.finishedAt === undefined;
