/** Requests across tenants: asked for a published cluster, waiting in its tenant's inbox until a member or a rule of that tenant decides, or it expires. */
import { AppError } from '#shared/errors/app-error.ts';
import { type Caller, mustHave, type Principal } from '../access/caller.ts';
import { systemPrincipal } from '../audit/record.ts';
import type { EventType } from '../events/types.ts';
import type { Coordinator } from '../model/coordinator.ts';
import type { PageRequest } from '../model/deps.ts';
import type { DueRecord } from '../model/peering-records.ts';
import { auditBoth, eventBoth } from '../peerings/cross-tenant/audit-both.ts';
import type { CrossTenantDeps } from '../peerings/cross-tenant/create.ts';
import type { Item, Key, Page } from '../ports/store.ts';
import { key, partition } from '../store/keys.ts';
import { pageOf } from '../store/pages.ts';
import { earlier } from '../store/repeat.ts';
import { untilWritten } from '../store/until-written.ts';
import { planPeering } from './agreed-peering.ts';
import type { ApprovalRules } from './approval-rules.ts';
import { type Asked, createAsk } from './ask.ts';
import {
  aboutOf,
  checkReason,
  closeOps,
  dueId,
  mustBePending,
  type NewRequest,
  pairText,
  pickAudit,
  type RequestRecord,
  type RequestState,
  type RequestView,
  requestView,
  tenantsOf,
} from './request.ts';

interface RequestFilter extends PageRequest {
  /** Default `received`. */
  readonly direction?: RequestView['direction'];
  readonly state?: RequestState;
}

export interface Inbox {
  /** Asks. While a request for the same pair is pending, that one (`created: false`). `not_found` for what is not published. */
  ask(
    caller: Caller,
    input: NewRequest,
    signal?: AbortSignal,
  ): Promise<{ readonly request: RequestView; readonly created: boolean }>;
  get(caller: Caller, id: string, signal?: AbortSignal): Promise<RequestView>;
  list(caller: Caller, filter?: RequestFilter, signal?: AbortSignal): Promise<Page<RequestView>>;
  /** Only the asked tenant. Makes the peering. Repeating changes nothing; deciding otherwise is `request_closed`. */
  approve(caller: Caller, id: string, answer?: string, signal?: AbortSignal): Promise<RequestView>;
  reject(caller: Caller, id: string, answer?: string, signal?: AbortSignal): Promise<RequestView>;
  /** Only the asking tenant. */
  withdraw(caller: Caller, id: string, signal?: AbortSignal): Promise<RequestView>;
  /** Closes a request whose time is over; for the sweep. */
  lapse(tenant: string, due: Item<DueRecord>, signal?: AbortSignal): Promise<void>;
}

interface Parts {
  readonly coordinator: Coordinator;
  readonly rules: ApprovalRules;
}

export function createInbox(deps: CrossTenantDeps, { coordinator, rules }: Parts): Inbox {
  const { store, clock } = deps;
  const ask = createAsk(deps, rules);
  const read = <T>({ pk, sk }: Key, signal?: AbortSignal): Promise<Item<T> | undefined> => store.get<T>(pk, sk, signal);

  const viewFor = (tenant: string, { value, version }: Pick<Item<RequestRecord>, 'value' | 'version'>): RequestView =>
    requestView(value, { version, tenant, now: clock.now() });

  const unknown = (id: string): AppError =>
    new AppError('not_found', `there is no request ${JSON.stringify(id)}`, { detail: { id } });

  async function load(at: Key, id: string, signal?: AbortSignal): Promise<Item<RequestRecord>> {
    const item = await read<RequestRecord>(at, signal);
    if (!item) throw unknown(id);
    return item;
  }

  interface Decision {
    readonly state: Exclude<RequestState, 'pending'>;
    readonly answer?: string;
    readonly decidedBy?: string;
    readonly event: EventType;
    readonly action: string;
  }

  /** Closes a pending request, once; `item` is the provider's copy. */
  async function close(actor: Principal, item: Item<RequestRecord>, decision: Decision, signal?: AbortSignal) {
    const { id, providerTenant, consumerTenant } = item.value;
    const [asker, open, due] = await Promise.all([
      read<RequestRecord>(key.sentRequest(consumerTenant, id), signal),
      read<{ readonly id: string }>(key.openRequest(providerTenant, consumerTenant, pairText(item.value)), signal),
      read(key.due(providerTenant, item.value.expiresAt, dueId(id)), signal),
    ]);
    const now = clock.now();
    const { state, answer, decidedBy, event, action } = decision;
    const plan =
      state === 'approved' ? await planPeering(deps, actor, { request: item.value, byRule: false }, signal) : undefined;
    const askedBy = asker?.value.askedBy;
    const record: RequestRecord = {
      ...item.value,
      state,
      decidedAt: now,
      ...(askedBy === undefined ? {} : { askedBy }),
      ...(answer === undefined ? {} : { answer }),
      ...(decidedBy === undefined ? {} : { decidedBy }),
      ...(plan ? { peering: plan.id } : {}),
    };
    const versions = {
      provider: item.version,
      ...(asker ? { asker: asker.version } : {}),
      ...(open?.value.id === id ? { open: open.version } : {}),
      due: due !== undefined,
    };
    const about = aboutOf(record, {
      ...(answer ? { answer } : {}),
      ...(plan ? { peering: plan.id } : {}),
    });
    const tenants = tenantsOf(record);
    await store.transact(
      [
        ...closeOps(record, versions, now),
        ...(plan?.ops ?? []),
        ...auditBoth(deps, actor, tenants, { action, ...pickAudit(about) }),
      ],
      [...(plan?.events ?? []), ...eventBoth(deps, tenants, event, about)],
      signal,
    );
    return record;
  }

  async function decide(caller: Caller, id: string, decision: Decision, signal?: AbortSignal): Promise<RequestView> {
    mustHave(caller, 'requests:write');
    const sent = decision.state === 'withdrawn';
    const at = sent ? key.sentRequest(caller.tenant, id) : key.inbox(caller.tenant, id);
    await untilWritten(async () => {
      const own = await load(at, id, signal);
      if (own.value.state === decision.state) return;
      mustBePending(own.value, clock.now());
      const item = sent ? await load(key.inbox(own.value.providerTenant, id), id, signal) : own;
      mustBePending(item.value, clock.now());
      await close(caller, item, decision, signal);
    }, signal);
    const done = await load(at, id, signal);
    if (done.value.peering !== undefined) await coordinator.look(caller.tenant, done.value.peering, signal);
    return viewFor(caller.tenant, done);
  }

  const answering =
    (decision: Decision): Inbox['approve'] =>
    async (caller, id, answer = '', signal) =>
      decide(caller, id, { ...decision, answer: checkReason(answer, 'reason'), decidedBy: caller.principal }, signal);

  return {
    async ask(caller, input, signal) {
      mustHave(caller, 'requests:write');
      const { item, created, peering } =
        earlier<Asked>(caller) ?? (await untilWritten(() => ask(caller, input, signal), signal));
      if (peering !== undefined) await coordinator.look(caller.tenant, peering, signal);
      return { request: viewFor(caller.tenant, item), created };
    },

    async get(caller, id, signal) {
      mustHave(caller, 'requests:read');
      const { tenant } = caller;
      const item =
        (await read<RequestRecord>(key.inbox(tenant, id), signal)) ??
        (await load(key.sentRequest(tenant, id), id, signal));
      return viewFor(tenant, item);
    },

    async list(caller, filter = {}, signal) {
      mustHave(caller, 'requests:read');
      const { tenant } = caller;
      const sent = filter.direction === 'sent';
      return pageOf<RequestRecord, RequestView>(
        store,
        { partition: sent ? partition.sentRequests(tenant) : partition.inbox(tenant) },
        filter,
        (item) => {
          const view = viewFor(tenant, item);
          return filter.state === undefined || filter.state === view.state ? view : undefined;
        },
        signal,
      );
    },

    approve: answering({ state: 'approved', event: 'request.approved', action: 'request.approve' }),

    reject: answering({ state: 'rejected', event: 'request.rejected', action: 'request.reject' }),

    async withdraw(caller, id, signal) {
      return decide(caller, id, { state: 'withdrawn', event: 'request.withdrawn', action: 'request.withdraw' }, signal);
    },

    async lapse(tenant, due, signal) {
      const item = await read<RequestRecord>(key.inbox(tenant, due.value.request ?? ''), signal);
      if (item?.value.state !== 'pending') {
        await store.transact([{ op: 'delete', pk: due.pk, sk: due.sk, ifVersion: due.version }], [], signal);
        return;
      }
      const decision = { state: 'expired', event: 'request.expired', action: 'request.expire' } as const;
      await close(systemPrincipal(tenant), item, decision, signal);
    },
  };
}
