/** People and machines of a tenant that log in at an identity provider: named by e-mail address or by issuer and subject, with a role. */
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

interface MemberRecord {
  readonly id: string;
  /** Lower case. Counts only when the issuer says that it is verified. */
  readonly email?: string;
  readonly issuer?: string;
  readonly subject?: string;
  readonly name?: string;
  readonly role: Role;
  readonly createdAt: number;
}
export type MemberView = MemberRecord & { readonly version: number };

/** Either `email`, or `issuer` and `subject`. */
interface NewMember {
  readonly email?: string;
  readonly issuer?: string;
  readonly subject?: string;
  readonly name?: string;
  readonly role: Role;
}

/** Whom a verified token is about. */
interface Identity {
  readonly issuer: string;
  readonly subject: string;
  readonly verifiedEmail?: string;
}

export interface Members {
  add(caller: Caller, input: NewMember, signal?: AbortSignal): Promise<MemberView>;
  list(caller: Caller, page?: PageRequest, signal?: AbortSignal): Promise<Page<MemberView>>;
  get(caller: Caller, id: string, signal?: AbortSignal): Promise<MemberView>;
  change(
    caller: Caller,
    id: string,
    change: { readonly role?: Role; readonly name?: string },
    options?: { readonly ifVersion?: number },
    signal?: AbortSignal,
  ): Promise<MemberView>;
  /** From then on its tokens are refused. */
  remove(caller: Caller, id: string, signal?: AbortSignal): Promise<MemberView>;
  /** By issuer and subject, else by verified e-mail address. */
  find(tenant: string, identity: Identity, signal?: AbortSignal): Promise<MemberRecord | undefined>;
}

const subjectHash = (issuer: string, subject: string): string => sha256Hex(`subject\n${issuer}\n${subject}`);
const emailHash = (email: string): string => sha256Hex(`email\n${email.toLowerCase()}`);
const hashOf = ({ email, issuer = '', subject = '' }: NewMember): string =>
  email === undefined ? subjectHash(issuer, subject) : emailHash(email);

export function createMembers(deps: Pick<ControlDeps, 'store' | 'clock' | 'ids'>): Members {
  const { store, clock, ids } = deps;

  async function load(tenant: string, id: string, signal?: AbortSignal): Promise<Item<MemberRecord>> {
    const { pk, sk } = key.member(tenant, id);
    const item = await store.get<MemberRecord>(pk, sk, signal);
    if (!item) throw new AppError('not_found', `there is no member ${JSON.stringify(id)}`, { detail: { member: id } });
    return item;
  }

  async function byIdentity(tenant: string, hash: string, signal?: AbortSignal): Promise<MemberRecord | undefined> {
    const at = key.identity(tenant, hash);
    const found = await store.get<{ readonly id: string }>(at.pk, at.sk, signal);
    if (!found) return undefined;
    const { pk, sk } = key.member(tenant, found.value.id);
    return (await store.get<MemberRecord>(pk, sk, signal))?.value;
  }

  return {
    async add(caller, input, signal) {
      mustHave(caller, 'members:write');
      mustNotExceed(caller, input);
      const { email, issuer, subject, name, role } = input;
      const byEmail = email !== undefined && issuer === undefined && subject === undefined;
      const bySubject = email === undefined && issuer !== undefined && subject !== undefined;
      if (!byEmail && !bySubject) {
        throw new AppError('fields_conflict', 'a member is named by email alone, or by issuer and subject together', {
          detail: { field: email === undefined ? 'subject' : 'email' },
        });
      }
      const before = earlier<MemberView>(caller);
      if (before) return before;
      const id = ids.next('mb');
      const record: MemberRecord = {
        id,
        ...(email === undefined ? { issuer: issuer ?? '', subject: subject ?? '' } : { email: email.toLowerCase() }),
        ...(name === undefined ? {} : { name }),
        role,
        createdAt: clock.now(),
      };
      const about = `member/${id}`;
      try {
        await store.transact(
          [
            { op: 'put', ...key.identity(caller.tenant, hashOf(input)), value: { id } },
            { op: 'put', ...key.member(caller.tenant, id), value: record },
            ...auditOps(deps, caller, { action: 'member.add', subject: about, after: record }),
            ...remembered(caller, { ...record, version: 1 } satisfies MemberView),
          ],
          [eventOf(deps, caller.tenant, 'member.added', about, { role })],
          signal,
        );
      } catch (error) {
        if (codeOf(error) !== 'version_conflict') throw error;
        throw new AppError('already_exists', `${email ?? subject} is a member already; change its role instead`);
      }
      return { ...record, version: 1 };
    },

    async list(caller, page = {}, signal) {
      mustHave(caller, 'members:read');
      const query = { partition: partition.members(caller.tenant) };
      return pageOf<MemberRecord, MemberView>(
        store,
        query,
        page,
        ({ value, version }) => ({ ...value, version }),
        signal,
      );
    },

    async get(caller, id, signal) {
      mustHave(caller, 'members:read');
      const { value, version } = await load(caller.tenant, id, signal);
      return { ...value, version };
    },

    async change(caller, id, { role, name }, { ifVersion } = {}, signal) {
      mustHave(caller, 'members:write');
      if (role !== undefined) mustNotExceed(caller, { role });
      const { value: before, version } = await load(caller.tenant, id, signal);
      if (ifVersion !== undefined && ifVersion !== version) {
        throw new AppError('precondition_failed', `member ${id} has version ${version}, not ${ifVersion}`);
      }
      const after: MemberRecord = {
        ...before,
        ...(role === undefined ? {} : { role }),
        ...(name === undefined ? {} : { name }),
      };
      const about = `member/${id}`;
      await store.transact(
        [
          { op: 'update', ...key.member(caller.tenant, id), value: after, ifVersion: version },
          ...auditOps(deps, caller, { action: 'member.change', subject: about, before, after }),
        ],
        [eventOf(deps, caller.tenant, 'member.changed', about, { role: after.role })],
        signal,
      );
      return { ...after, version: version + 1 };
    },

    async remove(caller, id, signal) {
      mustHave(caller, 'members:write');
      const { value, version } = await load(caller.tenant, id, signal);
      const at = key.identity(caller.tenant, hashOf(value));
      const identity = await store.get(at.pk, at.sk, signal);
      const about = `member/${id}`;
      await store.transact(
        [
          { op: 'delete', ...key.member(caller.tenant, id), ifVersion: version },
          ...(identity ? [{ op: 'delete' as const, ...at, ifVersion: identity.version }] : []),
          ...auditOps(deps, caller, { action: 'member.remove', subject: about, before: value }),
        ],
        [eventOf(deps, caller.tenant, 'member.removed', about)],
        signal,
      );
      return { ...value, version };
    },

    async find(tenant, { issuer, subject, verifiedEmail }, signal) {
      const member = await byIdentity(tenant, subjectHash(issuer, subject), signal);
      if (member || verifiedEmail === undefined) return member;
      return byIdentity(tenant, emailHash(verifiedEmail), signal);
    },
  };
}
