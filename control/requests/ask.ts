/** Asking for a published cluster of another tenant: checked, then waiting in that tenant's inbox, or approved at once by one of its rules. */
import { AppError } from '#shared/errors/app-error.ts';
import type { Caller } from '../access/caller.ts';
import { systemPrincipal } from '../audit/record.ts';
import type { ClusterRecord } from '../model/cluster.ts';
import type { DirectoryEntry } from '../model/directory-entry.ts';
import type { DueRecord } from '../model/peering-records.ts';
import { auditBoth, eventBoth } from '../peerings/cross-tenant/audit-both.ts';
import type { CrossTenantDeps } from '../peerings/cross-tenant/create.ts';
import { checkTerms } from '../peerings/terms/terms.ts';
import type { Item, Key, NewEvent, Op } from '../ports/store.ts';
import { key } from '../store/keys.ts';
import { remembered } from '../store/repeat.ts';
import { planPeering } from './agreed-peering.ts';
import type { ApprovalRules } from './approval-rules.ts';
import {
  aboutOf,
  checkLife,
  checkReason,
  copyForAsker,
  copyForProvider,
  dueId,
  type NewRequest,
  pairText,
  pickAudit,
  type RequestRecord,
  tenantsOf,
} from './request.ts';

export interface Asked {
  readonly item: Pick<Item<RequestRecord>, 'value' | 'version'>;
  readonly created: boolean;
  /** When a rule approved it at once. */
  readonly peering?: string;
}

/** One attempt, which a conflicting write fails; the right of the caller has been checked. */
export function createAsk(
  deps: CrossTenantDeps,
  rules: ApprovalRules,
): (caller: Caller, input: NewRequest, signal?: AbortSignal) => Promise<Asked> {
  const { store, clock, ids } = deps;
  const read = <T>({ pk, sk }: Key, signal?: AbortSignal): Promise<Item<T> | undefined> => store.get<T>(pk, sk, signal);

  async function publishedEntry(input: NewRequest, signal?: AbortSignal): Promise<Item<DirectoryEntry>> {
    const entry = await read<DirectoryEntry>(key.published(input.providerTenant, input.provider), signal);
    if (entry) return entry;
    throw new AppError(
      'not_found',
      `the directory has no cluster ${input.provider} of tenant ${input.providerTenant}; see \`isthmus directory list\``,
      { detail: { tenant: input.providerTenant, cluster: input.provider } },
    );
  }

  /** What a rule approves is approved by the provider's tenant. The asking tenant learns that, and not which rule it was. */
  async function byRule(pending: RequestRecord, entry: DirectoryEntry, signal?: AbortSignal) {
    const { providerTenant, consumerTenant: tenant, resources } = pending;
    const requested = { tenant, labels: entry.labels, resources, class: pending.class };
    const found = await rules.find(providerTenant, requested, signal);
    if (!found) return undefined;
    const actor = { ...systemPrincipal(providerTenant), principal: `approval-rule/${found.rule.id}` };
    const plan = await planPeering(deps, actor, { request: pending, byRule: true }, signal);
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

  return async (caller, input, signal) => {
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
  };
}

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
