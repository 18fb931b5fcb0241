/**
 * The end of a tenant. Asked for in one request and confirmed in another with the tenant's name; from then on nothing can be changed. Peerings
 * must have ended, or `force` ends them; when they have, everything is removed, and a tombstone keeps the name from being given again. Every
 * step can be repeated: the sweep continues what a crashed process left undone.
 */
import { AppError, codeOf } from '#shared/errors/app-error.ts';
import { type Caller, mustHave, type OperatorCaller, type Principal } from '../access/caller.ts';
import { newSecret, sameText, sha256Hex } from '../access/secrets.ts';
import { auditOps, eventOf, systemPrincipal } from '../audit/record.ts';
import type { ControlDeps } from '../model/deps.ts';
import type { PeeringRecord } from '../model/peering-records.ts';
import type { KnownTenants, TenantRecord } from '../model/tenant.ts';
import { hasEnded } from '../peerings/core/ended.ts';
import type { Item } from '../ports/store.ts';
import { everyItem } from '../store/every-item.ts';
import { key, partition } from '../store/keys.ts';
import { earlier, remembered } from '../store/repeat.ts';
import { createPurge, type PurgeDeps } from './purge.ts';

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

const wishLifeMs = 15 * 60_000;

interface DeletionDeps extends PurgeDeps, Pick<ControlDeps, 'ids'> {}

export function createDeletion(deps: DeletionDeps, known: KnownTenants): Deletion {
  const { store, clock, ids, log, unpeer } = deps;
  const purge = createPurge(deps, known);

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
