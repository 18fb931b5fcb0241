/** Tenants and their API keys: made, rotated, revoked, checked. Only hashes are stored. */
import { AppError, codeOf } from '#shared/errors/app-error.ts';
import { type Caller, mustHave, type Origin, type Principal } from '../access/caller.ts';
import { sameText, sha256Hex } from '../access/secrets.ts';
import { auditOps, eventOf } from '../audit/record.ts';
import type { ApiKeyView, NewApiKey } from '../model/api-key.ts';
import type { ControlDeps, PageRequest } from '../model/deps.ts';
import type { KnownTenants, TenantRecord } from '../model/tenant.ts';
import type { Item, Page } from '../ports/store.ts';
import { key, partition } from '../store/keys.ts';
import { pageOfMany } from '../store/pages.ts';
import { earlier, remembered } from '../store/repeat.ts';
import {
  type ApiKeyRecord,
  buildKey,
  checkNewKey,
  isLive,
  mustNotExceed,
  parseKeyText,
  putKey,
  viewOfKey,
} from './api-key.ts';
import type { KeyUse } from './key-use.ts';
import { checkTenantName } from './tenant.ts';

/** `secret` is shown once and stored nowhere. */
export interface IssuedKey {
  readonly key: ApiKeyView;
  readonly secret: string;
}

export interface Tenants {
  /** Makes tenant `name` and its first admin key; when the tenant exists, does nothing and returns no secret. For local mode. */
  bootstrap(name: string, origin: Origin, signal?: AbortSignal): Promise<IssuedKey | undefined>;
  createKey(caller: Caller, input: NewApiKey, signal?: AbortSignal): Promise<IssuedKey>;
  /** A new secret with the same rights; the old key keeps working for `overlapSeconds` (default 0). */
  rotateKey(caller: Caller, id: string, overlapSeconds?: number, signal?: AbortSignal): Promise<IssuedKey>;
  /**
   * `in_use` for the very key that asks, so that no caller locks itself out by accident; `forbidden` for a key of wider rights, so that a narrow
   * key cannot lock the wide ones out.
   */
  revokeKey(caller: Caller, id: string, signal?: AbortSignal): Promise<ApiKeyView>;
  listKeys(caller: Caller, page?: PageRequest, signal?: AbortSignal): Promise<Page<ApiKeyView>>;
  /** `unauthenticated` when the key is unknown, revoked or expired, with the same words for each; `tenant_suspended` for a good one. */
  authenticate(secret: string, origin: Origin, signal?: AbortSignal): Promise<Caller>;
  /** The caller that this key is now, for what it opened before. Refuses as `authenticate` does. */
  authenticateAgain(tenant: string, id: string, origin: Origin, signal?: AbortSignal): Promise<Caller>;
}

const maxOverlapSeconds = 30 * 86_400;

type TenantsDeps = Pick<ControlDeps, 'store' | 'clock' | 'ids'>;

export function createTenants(deps: TenantsDeps, known: KnownTenants, keyUse: KeyUse): Tenants {
  const { store, clock } = deps;

  async function load(caller: Caller, id: string, signal?: AbortSignal): Promise<Item<ApiKeyRecord>> {
    const { pk, sk } = key.apiKey(caller.tenant, id);
    const item = await store.get<ApiKeyRecord>(pk, sk, signal);
    if (!item) throw new AppError('not_found', `there is no API key ${JSON.stringify(id)}`, { detail: { id } });
    return item;
  }

  async function callerOf(tenant: string, record: ApiKeyRecord, origin: Origin, signal?: AbortSignal): Promise<Caller> {
    if (!isLive(record, clock.now())) throw refusedKey();
    const { id, role, scopes } = record;
    await known.mustServe(tenant, signal);
    return { ...origin, tenant, principal: `api-key/${id}`, role, ...(scopes === undefined ? {} : { scopes }) };
  }

  return {
    async bootstrap(name, origin, signal) {
      checkTenantName(name);
      const system: Principal = { ...origin, tenant: name, principal: 'system' };
      const { record, secret } = buildKey(deps, name, system, { name: 'first admin', role: 'admin' });
      const subject = `tenant/${name}`;
      try {
        await store.transact(
          [
            { op: 'put', ...key.tenant(name), value: { name, createdAt: clock.now() } satisfies TenantRecord },
            { op: 'put', ...key.tenantName(name), value: {} },
            { op: 'check', ...key.tombstone(name), ifVersion: 0 },
            putKey(name, record),
            ...auditOps(deps, system, { action: 'tenant.create', subject, after: { name, firstKey: record.id } }),
          ],
          [eventOf(deps, name, 'tenant.created', subject)],
          signal,
        );
      } catch (error) {
        if (codeOf(error) === 'version_conflict') return undefined;
        throw error;
      }
      return { key: viewOfKey(record), secret };
    },

    async createKey(caller, input, signal) {
      mustHave(caller, 'keys:write');
      checkNewKey(input);
      mustNotExceed(caller, input);
      const before = earlier<IssuedKey>(caller);
      if (before) return before;
      const { record, secret } = buildKey(deps, caller.tenant, caller, input);
      const subject = `api-key/${record.id}`;
      const view = viewOfKey(record);
      await store.transact(
        [
          putKey(caller.tenant, record),
          ...auditOps(deps, caller, { action: 'api-key.create', subject, after: view }),
          ...remembered(caller, { key: view, secret } satisfies IssuedKey),
        ],
        [eventOf(deps, caller.tenant, 'api-key.created', subject, { name: view.name, role: view.role })],
        signal,
      );
      return { key: view, secret };
    },

    async rotateKey(caller, id, overlapSeconds = 0, signal) {
      mustHave(caller, 'keys:write');
      if (!Number.isInteger(overlapSeconds) || overlapSeconds < 0 || overlapSeconds > maxOverlapSeconds) {
        throw new AppError(
          'invalid_input',
          `overlapSeconds is ${overlapSeconds}; accepted is 0 to ${maxOverlapSeconds}`,
          {
            detail: { field: 'overlapSeconds', value: overlapSeconds },
          },
        );
      }
      const before = earlier<IssuedKey>(caller);
      if (before) return before;
      const now = clock.now();
      const { value: old, version } = await load(caller, id, signal);
      mustNotExceed(caller, old);
      if (!isLive(old, now) || old.replacedBy !== undefined) {
        throw new AppError('in_use', `API key ${id} is expired, revoked or already rotated; create a new one`, {
          detail: { id },
        });
      }
      const { record, secret } = buildKey(deps, caller.tenant, caller, old);
      const next: ApiKeyRecord = old.expiresAt === undefined ? record : { ...record, expiresAt: old.expiresAt };
      const retired: ApiKeyRecord = { ...old, revokedAt: now + overlapSeconds * 1_000, replacedBy: next.id };
      const subject = `api-key/${id}`;
      await store.transact(
        [
          putKey(caller.tenant, next),
          { op: 'update', ...key.apiKey(caller.tenant, id), value: retired, ifVersion: version },
          ...auditOps(deps, caller, {
            action: 'api-key.rotate',
            subject,
            before: viewOfKey(old),
            after: viewOfKey(next),
          }),
          ...remembered(caller, { key: viewOfKey(next), secret } satisfies IssuedKey),
        ],
        [eventOf(deps, caller.tenant, 'api-key.rotated', subject, { replacedBy: next.id })],
        signal,
      );
      return { key: viewOfKey(next), secret };
    },

    async revokeKey(caller, id, signal) {
      mustHave(caller, 'keys:write');
      const now = clock.now();
      const { value: old, version } = await load(caller, id, signal);
      mustNotExceed(caller, old);
      if (old.revokedAt !== undefined && old.revokedAt <= now) return viewOfKey(old);
      if (caller.principal === `api-key/${id}`) {
        throw new AppError('in_use', `API key ${id} is the one that asks: revoke it with another admin key`, {
          detail: { id, remedy: 'rotate it, which replaces it at once, or revoke it with another key' },
        });
      }
      const revoked: ApiKeyRecord = { ...old, revokedAt: now };
      const subject = `api-key/${id}`;
      await store.transact(
        [
          { op: 'update', ...key.apiKey(caller.tenant, id), value: revoked, ifVersion: version },
          ...auditOps(deps, caller, {
            action: 'api-key.revoke',
            subject,
            before: viewOfKey(old),
            after: viewOfKey(revoked),
          }),
        ],
        [eventOf(deps, caller.tenant, 'api-key.revoked', subject)],
        signal,
      );
      return viewOfKey(revoked);
    },

    async listKeys(caller, page = {}, signal) {
      mustHave(caller, 'keys:read');
      const query = { partition: partition.apiKeys(caller.tenant) };
      const views = async (items: readonly Item<ApiKeyRecord>[]): Promise<readonly ApiKeyView[]> => {
        const ids = items.map(({ value }) => value.id);
        const used = await keyUse.last(caller.tenant, ids, signal);
        return items.map(({ value }, i) => {
          const lastUsedAt = used[i];
          return { ...viewOfKey(value), ...(lastUsedAt === undefined ? {} : { lastUsedAt }) };
        });
      };
      return pageOfMany(store, query, page, views, signal);
    },

    async authenticate(text, origin, signal) {
      const parsed = parseKeyText(text);
      const { pk, sk } = key.apiKey(parsed?.tenant ?? 'none', parsed?.id ?? 'none');
      const item = parsed && (await store.get<ApiKeyRecord>(pk, sk, signal));
      if (!parsed || !item || !sameText(item.value.hash, sha256Hex(text))) throw refusedKey();
      const caller = await callerOf(parsed.tenant, item.value, origin, signal);
      await keyUse.used(parsed.tenant, item.value.id, signal);
      return caller;
    },

    async authenticateAgain(tenant, id, origin, signal) {
      const { pk, sk } = key.apiKey(tenant, id);
      const item = await store.get<ApiKeyRecord>(pk, sk, signal);
      if (!item) throw refusedKey();
      return callerOf(tenant, item.value, origin, signal);
    },
  };
}

const refusedKey = (): AppError => new AppError('unauthenticated', 'this API key is unknown, revoked or expired');
