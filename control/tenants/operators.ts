/** Operators of the deployment: their keys, and what they do with tenants. They are members of none and read nothing inside one. */
import { AppError, codeOf } from '#shared/errors/app-error.ts';
import type { OperatorCaller, Origin, Principal } from '../access/caller.ts';
import { newSecret, sameText, sha256Hex } from '../access/secrets.ts';
import { auditOps, eventOf } from '../audit/record.ts';
import { checkLimits, hostedLimits } from '../limits/limits.ts';
import type { ControlDeps, PageRequest } from '../model/deps.ts';
import type { Limits } from '../model/limits.ts';
import type { KnownTenants, TenantRecord } from '../model/tenant.ts';
import type { Item, Page } from '../ports/store.ts';
import { key, partition } from '../store/keys.ts';
import { pageOfMany } from '../store/pages.ts';
import { earlier, remembered } from '../store/repeat.ts';
import { buildKey, putKey, viewOfKey } from './api-key.ts';
import { changed, checkTenantName, type TenantChange, type TenantView, tenantView } from './tenant.ts';
import type { IssuedKey } from './tenants.ts';

interface NewTenant {
  readonly name: string;
  readonly displayName?: string;
  readonly limits?: Partial<Limits>;
}

interface NewTenantAnswer {
  readonly tenant: TenantView;
  readonly issued: IssuedKey;
}

export interface Operators {
  /** The first operator key of this deployment, or undefined when there is one already. */
  bootstrap(origin: Origin, signal?: AbortSignal): Promise<string | undefined>;
  /** One more key, for a caller with access to the store itself: local mode and deployment scripts. */
  issue(origin: Origin, signal?: AbortSignal): Promise<string>;
  authenticate(secret: string, origin: Origin, signal?: AbortSignal): Promise<OperatorCaller>;
  /** The tenant and its first admin key; `already_exists` also for the name of one that was deleted. */
  create(operator: OperatorCaller, input: NewTenant, signal?: AbortSignal): Promise<NewTenantAnswer>;
  get(operator: OperatorCaller, name: string, signal?: AbortSignal): Promise<TenantView>;
  list(operator: OperatorCaller, page?: PageRequest, signal?: AbortSignal): Promise<Page<TenantView>>;
  /**
   * One more admin key of a tenant whose own ones are lost, for a day: time enough to make another with it. The tenant finds operator and reason in
   * its audit log. `tenant_deleting` when it is being deleted.
   */
  recover(operator: OperatorCaller, name: string, reason: string, signal?: AbortSignal): Promise<IssuedKey>;
  /** Renames, suspends, resumes, sets limits. */
  change(
    operator: OperatorCaller,
    name: string,
    change: TenantChange,
    options?: { readonly ifVersion?: number },
    signal?: AbortSignal,
  ): Promise<TenantView>;
}

interface OperatorRecord {
  readonly id: string;
  readonly hash: string;
  readonly createdAt: number;
}

const form = /^iso_([0-9a-z]{1,64})_([-\w]{43})$/;
/** One item that only the first key can put. */
const first = '0-first';

type OperatorsDeps = Pick<ControlDeps, 'store' | 'clock' | 'ids' | 'limits'>;

export function createOperators(deps: OperatorsDeps, known: KnownTenants): Operators {
  const { store, clock, ids, limits: defaults = hostedLimits } = deps;

  function forge(): { readonly record: OperatorRecord; readonly secret: string } {
    const id = ids.next('ok');
    const secret = `iso_${id.replace(/^ok_/, '')}_${newSecret(ids)}`;
    return { record: { id, hash: sha256Hex(secret), createdAt: clock.now() }, secret };
  }

  async function load(name: string, signal?: AbortSignal): Promise<Item<TenantRecord>> {
    const { pk, sk } = key.tenant(name);
    const item = /^[-a-z0-9]{1,63}$/.test(name) ? await store.get<TenantRecord>(pk, sk, signal) : undefined;
    if (!item)
      throw new AppError('not_found', `there is no tenant ${JSON.stringify(name)}`, { detail: { tenant: name } });
    return item;
  }

  const inside = (operator: OperatorCaller, tenant: string): Principal => ({ ...operator, tenant });

  return {
    async bootstrap(_origin, signal) {
      const { record, secret } = forge();
      try {
        await store.transact(
          [
            { op: 'put', ...key.operator(first), value: { id: record.id } },
            { op: 'put', ...key.operator(record.id), value: record },
          ],
          [],
          signal,
        );
      } catch (error) {
        if (codeOf(error) === 'version_conflict') return undefined;
        throw error;
      }
      return secret;
    },

    async issue(_origin, signal) {
      const { record, secret } = forge();
      await store.transact([{ op: 'put', ...key.operator(record.id), value: record }], [], signal);
      return secret;
    },

    async authenticate(text, origin, signal) {
      const match = text.length <= 256 ? form.exec(text) : null;
      const { pk, sk } = key.operator(`ok_${match?.[1] ?? 'none'}`);
      const item = match && (await store.get<OperatorRecord>(pk, sk, signal));
      if (!item || !sameText(item.value.hash, sha256Hex(text))) {
        throw new AppError('unauthenticated', 'this operator key is unknown');
      }
      return { ...origin, principal: `operator/${item.value.id}` };
    },

    async create(operator, { name, displayName, limits }, signal) {
      checkTenantName(name);
      if (limits) checkLimits(limits);
      const before = earlier<NewTenantAnswer>(operator);
      if (before) return before;
      const actor = inside(operator, name);
      const { record, secret } = buildKey(deps, name, actor, { name: 'first admin', role: 'admin' });
      const tenant: TenantRecord = {
        name,
        state: 'active',
        createdAt: clock.now(),
        ...(displayName === undefined ? {} : { displayName }),
        ...(limits === undefined ? {} : { limits }),
      };
      const subject = `tenant/${name}`;
      const answer: NewTenantAnswer = {
        tenant: tenantView(tenant, 1, defaults),
        issued: { key: viewOfKey(record), secret },
      };
      try {
        await store.transact(
          [
            { op: 'put', ...key.tenant(name), value: tenant },
            { op: 'put', ...key.tenantName(name), value: {} },
            { op: 'check', ...key.tombstone(name), ifVersion: 0 },
            putKey(name, record),
            ...auditOps(deps, actor, { action: 'tenant.create', subject, after: { ...tenant, firstKey: record.id } }),
            ...remembered(operator, answer),
          ],
          [eventOf(deps, name, 'tenant.created', subject)],
          signal,
        );
      } catch (error) {
        if (codeOf(error) !== 'version_conflict') throw error;
        throw new AppError('already_exists', `the tenant name ${name} is taken, or was before; choose another`, {
          detail: { field: 'name', value: name },
        });
      }
      return answer;
    },

    async get(_operator, name, signal) {
      const { value, version } = await load(name, signal);
      return tenantView(value, version, defaults);
    },

    async list(_operator, page = {}, signal) {
      const views = async (names: readonly Item[]): Promise<readonly (TenantView | undefined)[]> => {
        const keys = names.map(({ sk: name }) => key.tenant(name));
        const items = await store.getMany<TenantRecord>({ keys }, signal);
        return items.map((item) => item && tenantView(item.value, item.version, defaults));
      };
      return pageOfMany(store, { partition: partition.tenants }, page, views, signal);
    },

    async recover(operator, name, reason, signal) {
      const before = earlier<IssuedKey>(operator);
      if (before) return before;
      const tenant = await load(name, signal);
      if (tenant.value.state === 'deleting') {
        throw new AppError('tenant_deleting', `tenant ${name} is being deleted; it gets no key any more`);
      }
      const actor = inside(operator, name);
      const input = { name: 'admin (recovered by the operator)', role: 'admin', expiresInSeconds: 86_400 } as const;
      const { record, secret } = buildKey(deps, name, actor, input);
      const issued: IssuedKey = { key: viewOfKey(record), secret };
      const subject = `api-key/${record.id}`;
      await store.transact(
        [
          putKey(name, record),
          { op: 'check', pk: tenant.pk, sk: tenant.sk, ifVersion: tenant.version },
          ...auditOps(deps, actor, { action: 'tenant.recover', subject, after: { ...issued.key, reason } }),
          ...remembered(operator, issued),
        ],
        [eventOf(deps, name, 'api-key.created', subject, { name: record.name, role: record.role })],
        signal,
      );
      return issued;
    },

    async change(operator, name, change, { ifVersion } = {}, signal) {
      const item = await load(name, signal);
      if (ifVersion !== undefined && ifVersion !== item.version) {
        throw new AppError('precondition_failed', `tenant ${name} has version ${item.version}, not ${ifVersion}`);
      }
      const next = changed(item.value, change);
      const subject = `tenant/${name}`;
      await store.transact(
        [
          { op: 'update', ...key.tenant(name), value: next, ifVersion: item.version },
          ...auditOps(deps, inside(operator, name), {
            action: 'tenant.change',
            subject,
            before: item.value,
            after: next,
          }),
        ],
        [eventOf(deps, name, 'tenant.changed', subject, { state: next.state })],
        signal,
      );
      known.forget(name);
      return tenantView(next, item.version + 1, defaults);
    },
  };
}
