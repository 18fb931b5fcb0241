/** Identity providers whose tokens a tenant accepts. */
import { AppError, codeOf } from '#shared/errors/app-error.ts';
import { type Caller, mustHave, type Role } from '../access/caller.ts';
import { sha256Hex } from '../access/secrets.ts';
import { auditOps, eventOf } from '../audit/record.ts';
import type { ControlDeps, PageRequest } from '../model/deps.ts';
import type { Item, Page } from '../ports/store.ts';
import { key, partition } from '../store/keys.ts';
import { pageOf } from '../store/pages.ts';
import { earlier, remembered } from '../store/repeat.ts';
import { mustNotExceed } from './api-key.ts';
import type { SigningKeys } from './signing-keys.ts';

/** Where in a token to look. A name, or a path of names joined by dots. */
interface ClaimNames {
  /** Default `sub`. */
  readonly subject?: string;
  /** Default `email`; counts only beside `email_verified: true`. */
  readonly email?: string;
  /** A word or list of words that `roles` maps. Absent: only members are let in. */
  readonly role?: string;
}

export interface IssuerRecord {
  readonly id: string;
  readonly url: string;
  readonly audience: string;
  readonly claims: ClaimNames;
  /** Word in the role claim to role here; of several the highest counts. */
  readonly roles: Readonly<Record<string, Role>>;
  readonly createdAt: number;
}
export type IssuerView = IssuerRecord & { readonly version: number };

interface NewIssuer {
  readonly url: string;
  readonly audience: string;
  readonly claims?: ClaimNames;
  readonly roles?: Readonly<Record<string, Role>>;
}

export interface Issuers {
  /** Fetches the provider's keys first, so that a wrong URL fails at the request that enters it. */
  register(caller: Caller, input: NewIssuer, signal?: AbortSignal): Promise<IssuerView>;
  list(caller: Caller, page?: PageRequest, signal?: AbortSignal): Promise<Page<IssuerView>>;
  remove(caller: Caller, id: string, signal?: AbortSignal): Promise<IssuerView>;
  /** All of a tenant, without an authorization check. */
  of(tenant: string, signal?: AbortSignal): Promise<readonly IssuerRecord[]>;
}

const maxIssuers = 10;

type IssuersDeps = Pick<ControlDeps, 'store' | 'clock' | 'ids' | 'documents'>;

export function createIssuers(deps: IssuersDeps, keys: SigningKeys): Issuers {
  const { store, clock, ids, documents } = deps;

  const all = async (tenant: string, signal?: AbortSignal): Promise<readonly Item<IssuerRecord>[]> =>
    (await store.query<IssuerRecord>({ partition: partition.issuers(tenant), limit: 2 * maxIssuers }, signal)).items;

  return {
    async register(caller, { url, audience, claims = {}, roles = {} }, signal) {
      mustHave(caller, 'issuers:write');
      // A caller that chooses the issuer of identities can become any member.
      mustNotExceed(caller, { role: 'admin' });
      const before = earlier<IssuerView>(caller);
      if (before) return before;
      const refusal = documents ? documents.refusal(url) : 'this broker accepts no identity providers';
      if (refusal !== undefined) {
        throw new AppError('url_refused', `url is ${JSON.stringify(url)}: ${refusal}`, {
          detail: { field: 'url', value: url },
        });
      }
      if (Object.keys(roles).length > 0 && claims.role === undefined) {
        throw new AppError('fields_conflict', 'roles maps the words of a claim; name that claim in claims.role', {
          detail: { field: 'claims.role' },
        });
      }
      if ((await all(caller.tenant, signal)).length >= maxIssuers) {
        throw new AppError('limit_reached', `the tenant has ${maxIssuers} issuers, which is the limit; remove one`, {
          detail: { limit: maxIssuers, of: 'issuers' },
        });
      }
      await keys.check(url, signal).catch((error: unknown) => {
        if (codeOf(error) !== 'issuer_unreachable') throw error;
        throw new AppError('issuer_unusable', (error as Error).message, { cause: error, detail: { field: 'url' } });
      });
      // The same provider and audience is the same issuer, also when two callers race.
      const id = `is_${sha256Hex(`${url}\n${audience}`).slice(0, 26)}`;
      const record: IssuerRecord = { id, url, audience, claims, roles, createdAt: clock.now() };
      const subject = `issuer/${id}`;
      try {
        await store.transact(
          [
            { op: 'put', ...key.issuer(caller.tenant, id), value: record },
            ...auditOps({ clock, ids }, caller, { action: 'issuer.register', subject, after: record }),
            ...remembered(caller, { ...record, version: 1 } satisfies IssuerView),
          ],
          [eventOf({ clock, ids }, caller.tenant, 'issuer.registered', subject, { url, audience })],
          signal,
        );
      } catch (error) {
        if (codeOf(error) !== 'version_conflict') throw error;
        throw new AppError('already_exists', `issuer ${url} with audience ${audience} is registered; remove it first`);
      }
      return { ...record, version: 1 };
    },

    async list(caller, page = {}, signal) {
      mustHave(caller, 'issuers:read');
      const query = { partition: partition.issuers(caller.tenant) };
      return pageOf<IssuerRecord, IssuerView>(
        store,
        query,
        page,
        ({ value, version }) => ({ ...value, version }),
        signal,
      );
    },

    async remove(caller, id, signal) {
      mustHave(caller, 'issuers:write');
      const { pk, sk } = key.issuer(caller.tenant, id);
      const item = await store.get<IssuerRecord>(pk, sk, signal);
      if (!item)
        throw new AppError('not_found', `there is no issuer ${JSON.stringify(id)}`, { detail: { issuer: id } });
      const subject = `issuer/${id}`;
      await store.transact(
        [
          { op: 'delete', pk, sk, ifVersion: item.version },
          ...auditOps({ clock, ids }, caller, { action: 'issuer.remove', subject, before: item.value }),
        ],
        [eventOf({ clock, ids }, caller.tenant, 'issuer.removed', subject)],
        signal,
      );
      return { ...item.value, version: item.version };
    },

    of: async (tenant, signal) => (await all(tenant, signal)).map(({ value }) => value),
  };
}
