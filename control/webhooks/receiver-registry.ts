/**
 * What a tenant does with webhooks and event targets alike: makes, reads, changes, deletes. What only one of them has comes as `Traits`. To say
 * where events go needs `events:read` besides `webhooks:write`: a key sends out nothing that it may not read.
 */
import { AppError } from '#shared/errors/app-error.ts';
import { type Caller, mustHave } from '../access/caller.ts';
import { auditOps, eventOf } from '../audit/record.ts';
import type { ControlDeps, PageRequest } from '../model/deps.ts';
import { type Item, type Page, withPrefix } from '../ports/store.ts';
import { key, partition } from '../store/keys.ts';
import { pageOfMany } from '../store/pages.ts';
import { remembered } from '../store/repeat.ts';
import { untilWritten } from '../store/until-written.ts';
import {
  changeEvents,
  forgetFailing,
  loadFailing,
  loadReceiver,
  maxReceivers,
  type ReceiverKind,
  subjectOf,
  switched,
} from './receivers.ts';
import type { FailingRecord, ReceiverRecord } from './records.ts';
import { checkTypes } from './subscription.ts';

export interface ReceiverChange {
  readonly types?: readonly string[];
  readonly description?: string;
  readonly enabled?: boolean;
}

export interface Traits<R extends ReceiverRecord, V, C extends ReceiverChange> {
  readonly kind: ReceiverKind;
  readonly view: (tenant: string, item: Item<R>, failingSince?: number) => V;
  /** What a change says of the fields that only this kind has. Throws where it is refused. */
  readonly own: (value: R, change: C) => Partial<R>;
  /** What a change of says `changed`. */
  readonly plain: (record: R) => unknown;
  /** What of a record may stand in the audit log. */
  readonly told: (record: R) => Readonly<Record<string, unknown>>;
}

export function createReceiverRegistry<R extends ReceiverRecord, V, C extends ReceiverChange>(
  deps: Pick<ControlDeps, 'store' | 'clock' | 'ids'>,
  { kind, view, own, plain, told }: Traits<R, V, C>,
) {
  const { store, clock } = deps;
  const { name, words } = kind;
  const ofTenant = (tenant: string) => ({
    partition: partition.webhooks(tenant),
    ...withPrefix(`${kind.prefix}_`),
  });
  const find = (tenant: string, id: string, signal?: AbortSignal) => loadReceiver<R>(deps, kind, tenant, id, signal);
  const shown = async (tenant: string, item: Item<R>, signal?: AbortSignal): Promise<V> =>
    view(tenant, item, (await loadFailing(deps, tenant, item.value.id, signal))?.value.since);

  function changed(value: R, change: C): R {
    const { types, description, enabled } = change;
    const { disabled: _, ...rest } = value;
    return {
      ...rest,
      ...own(value, change),
      ...(types === undefined ? {} : { types: checkTypes(types) }),
      ...(description === undefined ? {} : { description }),
      ...switched(value, enabled, clock.now()),
    } as R;
  }

  return {
    find,
    shown,

    /** Throws `limit_reached` when the tenant has as many as it may. */
    async mustHaveRoom(tenant: string, signal?: AbortSignal): Promise<void> {
      const { items } = await store.query({ ...ofTenant(tenant), limit: maxReceivers }, signal);
      if (items.length < maxReceivers) return;
      throw new AppError('limit_reached', `a tenant has at most ${maxReceivers} ${words}s; delete one first`, {
        detail: { limit: maxReceivers, of: `${words}s` },
      });
    },

    /** Answers with what `answer` makes of it, which is what a repeated request gets. */
    async add<A>(caller: Caller, value: R, answer: (view: V) => A, signal?: AbortSignal): Promise<A> {
      mustHave(caller, 'events:read');
      const { tenant } = caller;
      const at = key.webhook(tenant, value.id);
      const subject = subjectOf(value.id);
      const result = answer(view(tenant, { ...at, value, version: 1 }));
      await store.transact(
        [
          { op: 'put', ...at, value },
          ...auditOps(deps, caller, { action: `${name}.create`, subject, after: told(value) }),
          ...remembered(caller, result),
        ],
        [eventOf(deps, tenant, `${name}.created`, subject, { types: value.types })],
        signal,
      );
      return result;
    },

    async get(caller: Caller, id: string, signal?: AbortSignal): Promise<V> {
      mustHave(caller, 'webhooks:read');
      return shown(caller.tenant, await find(caller.tenant, id, signal), signal);
    },

    async list(caller: Caller, page: PageRequest = {}, signal?: AbortSignal): Promise<Page<V>> {
      mustHave(caller, 'webhooks:read');
      const { tenant } = caller;
      return pageOfMany<R, V>(
        store,
        ofTenant(tenant),
        page,
        async (items) => {
          const keys = items.map(({ value }) => key.webhookFailing(tenant, value.id));
          const failing = await store.getMany<FailingRecord>({ keys }, signal);
          return items.map((item, i) => view(tenant, item, failing[i]?.value.since));
        },
        signal,
      );
    },

    async change(
      caller: Caller,
      id: string,
      change: C,
      { ifVersion }: { readonly ifVersion?: number } = {},
      signal?: AbortSignal,
    ): Promise<V> {
      mustHave(caller, 'webhooks:write');
      mustHave(caller, 'events:read');
      const { tenant } = caller;
      const item = await untilWritten(async () => {
        const before = await find(tenant, id, signal);
        const { pk, sk, version } = before;
        if (ifVersion !== undefined && ifVersion !== version) {
          throw new AppError('precondition_failed', `${words} ${id} has version ${version}, not ${ifVersion}`);
        }
        const value = changed(before.value, change);
        const events = changeEvents(deps, tenant, { before: before.value, after: value, plain });
        if (events.length === 0) return before;
        await store.transact(
          [
            { op: 'update', pk, sk, value, ifVersion: version },
            ...auditOps(deps, caller, {
              action: `${name}.change`,
              subject: subjectOf(id),
              before: told(before.value),
              after: told(value),
            }),
            // What failed before it was switched on again does not count against it.
            ...(before.value.disabled && !value.disabled
              ? forgetFailing(await loadFailing(deps, tenant, id, signal))
              : []),
          ],
          events,
          signal,
        );
        return { ...before, value, version: version + 1 };
      }, signal);
      return shown(tenant, item, signal);
    },

    /** Answers with what it was. */
    async delete(caller: Caller, id: string, signal?: AbortSignal): Promise<{ item: Item<R>; failingSince?: number }> {
      mustHave(caller, 'webhooks:write');
      const { tenant } = caller;
      return untilWritten(async () => {
        const item = await find(tenant, id, signal);
        const failing = await loadFailing(deps, tenant, id, signal);
        const { pk, sk, version, value } = item;
        await store.transact(
          [
            { op: 'delete', pk, sk, ifVersion: version },
            ...forgetFailing(failing),
            ...auditOps(deps, caller, { action: `${name}.delete`, subject: subjectOf(id), before: told(value) }),
          ],
          [eventOf(deps, tenant, `${name}.deleted`, subjectOf(id))],
          signal,
        );
        return { item, ...(failing && { failingSince: failing.value.since }) };
      }, signal);
    },
  };
}
