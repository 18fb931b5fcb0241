/** Requests across tenants: asked for a published cluster, waiting in its tenant's inbox until a member or a rule of that tenant decides, or it expires. */
import { AppError } from '#shared/errors/app-error.ts';
import { type Caller, mustHave, type Principal } from '../access/caller.ts';
import { systemPrincipal } from '../audit/record.ts';
import type { EventType } from '../events/types.ts';
import type { ClusterRecord } from '../model/cluster.ts';
import type { Coordinator } from '../model/coordinator.ts';
import type { CrossTenant } from '../model/cross-tenant.ts';
import type { PageRequest } from '../model/deps.ts';
import type { DirectoryEntry } from '../model/directory-entry.ts';
import type { DueRecord } from '../model/peering-records.ts';
import { auditBoth, eventBoth } from '../peerings/cross-tenant/audit-both.ts';
import { type CrossTenantDeps, planCrossTenant } from '../peerings/cross-tenant/create.ts';
import { checkTerms } from '../peerings/terms/terms.ts';
import type { Item, Key, NewEvent, Op, Page } from '../ports/store.ts';
import { key, partition } from '../store/keys.ts';
import { pageOf } from '../store/pages.ts';
import { earlier, remembered } from '../store/repeat.ts';
import { untilWritten } from '../store/until-written.ts';
import type { ApprovalRules } from './approval-rules.ts';
import {
  checkLife,
  checkReason,
  closeOps,
  copyForAsker,
  copyForProvider,
  dueId,
  mustBePending,
  type NewRequest,
  pairText,
  type RequestRecord,
  type RequestState,
  type RequestView,
  requestView,
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

interface Asked {
  readonly item: Pick<Item<RequestRecord>, 'value' | 'version'>;
  readonly created: boolean;
  /** When a rule approved it at once. */
  readonly peering?: string;
}

type InboxDeps = CrossTenantDeps;

interface Parts {
  readonly coordinator: Coordinator;
  readonly rules: ApprovalRules;
}

/** How long both clusters have to agree once the tenant has. */
const agreeWithinMs = 7 * 86_400_000;

export function createInbox(deps: InboxDeps, { coordinator, rules }: Parts): Inbox {
  const { store, clock, ids } = deps;
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

  /** The provider's tenant agreed: the peering is part of the same transaction. */
  async function planPeering(actor: Principal, request: RequestRecord, byRule: boolean, signal?: AbortSignal) {
    const { consumer, provider, resources } = request;
    const across: CrossTenant = {
      consumer: request.consumerTenant,
      provider: request.providerTenant,
      grant: {
        by: 'request',
        id: request.id,
        limits: resources,
        classes: [request.class],
        lapsesAt: clock.now() + agreeWithinMs,
      },
    };
    const terms = { consumer, provider, resources, class: request.class };
    return planCrossTenant(deps, { who: actor, across, terms, byRule }, signal);
  }

  const tenantsOf = ({ providerTenant, consumerTenant }: RequestRecord) => [providerTenant, consumerTenant];
  const aboutOf = (request: RequestRecord, data: Readonly<Record<string, unknown>> = {}) => {
    const { consumerTenant, providerTenant, consumer, provider } = request;
    return { subject: `request/${request.id}`, data: { consumerTenant, consumer, providerTenant, provider, ...data } };
  };

  async function publishedEntry(input: NewRequest, signal?: AbortSignal): Promise<Item<DirectoryEntry>> {
    const entry = await read<DirectoryEntry>(key.published(input.providerTenant, input.provider), signal);
    if (entry) return entry;
    throw new AppError(
      'not_found',
      `the directory has no cluster ${input.provider} of tenant ${input.providerTenant}; see \`isthmus directory list\``,
      { detail: { tenant: input.providerTenant, cluster: input.provider } },
    );
  }

  async function askOnce(caller: Caller, input: NewRequest, signal?: AbortSignal): Promise<Asked> {
    const { providerTenant } = input;
    const consumerTenant = caller.tenant;
    const terms = checkTerms({ ...input, resources: input.resources ?? {} });
    const reason = checkReason(input.reason ?? '', 'reason');
    const lifeMs = checkLife(input.expiresInSeconds);
    if (providerTenant === consumerTenant) {
      throw new AppError('invalid_input', `providerTenant is your own; peer its clusters directly`, {
        detail: { field: 'providerTenant', value: providerTenant, accepted: 'another tenant' },
      });
    }
    const entry = await publishedEntry(input, signal);
    const cluster = await read<ClusterRecord>(key.cluster(consumerTenant, terms.consumer), signal);
    if (cluster?.value.state !== 'joined') {
      throw new AppError('cluster_unknown', `no cluster ${terms.consumer} has joined`, {
        detail: { cluster: terms.consumer },
      });
    }
    await deps.capacity.mustHaveRoom(consumerTenant, 'peerings', signal);
    const openAt = key.openRequest(providerTenant, consumerTenant, pairText(terms));
    const open = await read<{ readonly id: string }>(openAt, signal);
    const before = open && (await read<RequestRecord>(key.sentRequest(consumerTenant, open.value.id), signal));
    if (before?.value.state === 'pending' && before.value.expiresAt > clock.now())
      return { item: before, created: false };
    const now = clock.now();
    const id = ids.next('rq');
    const pending: RequestRecord = {
      id,
      consumerTenant,
      providerTenant,
      ...terms,
      reason,
      state: 'pending',
      createdAt: now,
      expiresAt: now + lifeMs,
      askedBy: caller.principal,
    };
    const decided = await byRule(pending, entry.value, signal);
    const record = decided?.record ?? pending;
    const about = aboutOf(record, { resources: record.resources, class: record.class, reason });
    const waits = record.state === 'pending';
    const asked: Asked = {
      item: { value: copyForAsker(record), version: 1 },
      created: true,
      ...(record.peering === undefined ? {} : { peering: record.peering }),
    };
    await store.transact(
      [
        { op: 'put', ...key.inbox(providerTenant, id), value: copyForProvider(record) },
        { op: 'put', ...key.sentRequest(consumerTenant, id), value: copyForAsker(record) },
        { op: 'check', pk: entry.pk, sk: entry.sk, ifVersion: entry.version },
        ...(waits ? waitOps(record, openAt, open) : (decided?.ops ?? [])),
        ...auditBoth(deps, caller, tenantsOf(record), { action: 'request.ask', ...pickAudit(about) }),
        ...remembered(caller, asked),
      ],
      [
        ...eventBoth(deps, [providerTenant], 'request.received', about),
        ...eventBoth(deps, [consumerTenant], 'request.sent', about),
        ...(decided?.events ?? []),
      ],
      signal,
    );
    return asked;
  }

  const pickAudit = (about: ReturnType<typeof aboutOf>) => ({ subject: about.subject, after: about.data });

  const waitOps = (record: RequestRecord, openAt: Key, open: Item | undefined): Op[] => [
    open
      ? { op: 'update', ...openAt, value: { id: record.id }, ifVersion: open.version }
      : { op: 'put', ...openAt, value: { id: record.id } },
    {
      op: 'put',
      ...key.due(record.providerTenant, record.expiresAt, dueId(record.id)),
      value: { request: record.id } satisfies DueRecord,
    },
  ];

  /** What a rule approves is approved by the provider's tenant. The asking tenant learns that, and not which rule it was. */
  async function byRule(pending: RequestRecord, entry: DirectoryEntry, signal?: AbortSignal) {
    const { providerTenant, consumerTenant: tenant, resources } = pending;
    const requested = { tenant, labels: entry.labels, resources, class: pending.class };
    const found = await rules.find(providerTenant, requested, signal);
    if (!found) return undefined;
    const actor = { ...systemPrincipal(providerTenant), principal: `approval-rule/${found.rule.id}` };
    const plan = await planPeering(actor, pending, true, signal);
    const record: RequestRecord = {
      ...pending,
      state: 'approved',
      decidedAt: clock.now(),
      decidedBy: actor.principal,
      peering: plan.id,
    };
    const tenants = tenantsOf(record);
    const about = aboutOf(record, { peering: plan.id });
    const ops: Op[] = [
      ...plan.ops,
      found.spend,
      ...auditBoth(deps, actor, tenants, { action: 'request.approve', ...pickAudit(about) }),
    ];
    const events: NewEvent[] = [...plan.events, ...eventBoth(deps, tenants, 'request.approved', about)];
    return { record, ops, events };
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
    const plan = state === 'approved' ? await planPeering(actor, item.value, false, signal) : undefined;
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
        earlier<Asked>(caller) ?? (await untilWritten(() => askOnce(caller, input, signal), signal));
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
