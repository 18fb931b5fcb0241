/** Event targets of a tenant: its own event buses and queues at AWS. Made, read, changed, deleted. */
import { externalIdOf, parseRoleArn, parseTargetArn, roleNamePrefix } from '#shared/domain/event-target-arn.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { type Caller, mustHave } from '../access/caller.ts';
import { auditOp, eventOf } from '../audit/record.ts';
import type { ControlDeps, PageRequest } from '../deps.ts';
import { key, partition } from '../keys.ts';
import { pageOf } from '../pages.ts';
import { untilWritten } from '../peerings/coordinate.ts';
import { type Item, type Page, withPrefix } from '../ports/store.ts';
import {
  changeEvents,
  eventTargetKind,
  failingSince,
  forgetFailing,
  loadReceiver,
  maxReceivers,
  subjectOf,
  switched,
} from './receivers.ts';
import type { EventTargetRecord, EventTargetView } from './records.ts';
import { checkTypes } from './subscription.ts';

export interface NewEventTarget {
  /** Of a bus or a queue. */
  readonly arn: string;
  /** In the same account, trusting this broker for this tenant. */
  readonly roleArn: string;
  /** `*`, types or groups of types. */
  readonly types: readonly string[];
  readonly description?: string;
}

/** What it points at stays: another bus or queue is another target, with deliveries of its own. */
export interface EventTargetChange extends Partial<Omit<NewEventTarget, 'arn'>> {
  readonly enabled?: boolean;
}

export interface EventTargetRegistry {
  /** Nothing is sent before an event happens or a test is asked for, so the role may be made afterwards. */
  create(caller: Caller, input: NewEventTarget, signal?: AbortSignal): Promise<EventTargetView>;
  get(caller: Caller, id: string, signal?: AbortSignal): Promise<EventTargetView>;
  list(caller: Caller, page?: PageRequest, signal?: AbortSignal): Promise<Page<EventTargetView>>;
  change(
    caller: Caller,
    id: string,
    change: EventTargetChange,
    options?: { readonly ifVersion?: number },
    signal?: AbortSignal,
  ): Promise<EventTargetView>;
  /** What waits for it is dropped. */
  delete(caller: Caller, id: string, signal?: AbortSignal): Promise<EventTargetView>;
}

const ofTenant = (tenant: string) => ({
  partition: partition.webhooks(tenant),
  ...withPrefix(`${eventTargetKind.prefix}_`),
});

function refuse(field: 'arn' | 'roleArn', value: string, accepted: string): never {
  throw new AppError('invalid_input', `${field} is ${JSON.stringify(value)}; accepted is ${accepted}`, {
    detail: { field, value, accepted },
  });
}

function checkArns(arn: string, roleArn: string): void {
  const target = parseTargetArn(arn);
  if (!target) {
    refuse('arn', arn, 'arn:aws:events:REGION:ACCOUNT:event-bus/NAME or arn:aws:sqs:REGION:ACCOUNT:NAME');
  }
  const role = parseRoleArn(roleArn);
  if (!role) refuse('roleArn', roleArn, `arn:aws:iam::ACCOUNT:role/${roleNamePrefix}NAME`);
  if (role.account !== target.account || role.partition !== target.partition) {
    const accepted = `a role in the account of the target, arn:${target.partition}:iam::${target.account}:role/${roleNamePrefix}NAME`;
    refuse('roleArn', roleArn, accepted);
  }
}

export function createEventTargetRegistry(
  deps: Pick<ControlDeps, 'store' | 'clock' | 'ids' | 'eventTargetSender'>,
): EventTargetRegistry {
  const { store, clock, ids, eventTargetSender } = deps;

  function mustBeAble(): void {
    if (eventTargetSender) return;
    throw new AppError(
      'event_targets_unavailable',
      'this broker has no event targets: it has no identity at AWS; use a webhook',
    );
  }

  async function view(
    tenant: string,
    { value, version }: Item<EventTargetRecord>,
    signal?: AbortSignal,
  ): Promise<EventTargetView> {
    const failing = await failingSince(deps, tenant, value.id, signal);
    return {
      ...value,
      type: parseTargetArn(value.arn)?.type ?? 'sqs',
      externalId: externalIdOf(tenant),
      principal: eventTargetSender?.principal ?? '',
      ...(failing === undefined ? {} : { failingSince: failing }),
      version,
    };
  }

  const find = (tenant: string, id: string, signal?: AbortSignal) =>
    loadReceiver<EventTargetRecord>(deps, eventTargetKind, tenant, id, signal);

  function changed(value: EventTargetRecord, change: EventTargetChange): EventTargetRecord {
    const { roleArn, types, description, enabled } = change;
    const { disabled: _, ...rest } = value;
    if (roleArn !== undefined) checkArns(value.arn, roleArn);
    return {
      ...rest,
      ...(roleArn === undefined ? {} : { roleArn }),
      ...(types === undefined ? {} : { types: checkTypes(types) }),
      ...(description === undefined ? {} : { description }),
      ...switched(value, enabled, clock.now()),
    };
  }

  const plain = ({ roleArn, types, description }: EventTargetRecord) => [roleArn, types, description];
  const told = ({ arn, roleArn, types, description, disabled }: EventTargetRecord) => ({
    arn,
    roleArn,
    types,
    description,
    enabled: disabled === undefined,
  });

  return {
    async create(caller, { arn, roleArn, types, description = '' }, signal) {
      mustHave(caller, 'webhooks:write');
      mustBeAble();
      const { tenant } = caller;
      checkArns(arn, roleArn);
      const wanted = checkTypes(types);
      const { items } = await store.query({ ...ofTenant(tenant), limit: maxReceivers }, signal);
      if (items.length >= maxReceivers) {
        throw new AppError('in_use', `a tenant has at most ${maxReceivers} event targets; delete one first`, {
          detail: { limit: maxReceivers },
        });
      }
      const id = ids.next(eventTargetKind.prefix);
      const at = key.webhook(tenant, id);
      const value: EventTargetRecord = {
        id,
        arn,
        roleArn,
        description,
        types: wanted,
        createdAt: clock.now(),
        createdBy: caller.principal,
      };
      const subject = subjectOf(id);
      await store.transact(
        [
          { op: 'put', ...at, value },
          auditOp(deps, caller, { action: 'event-target.create', subject, after: told(value) }),
        ],
        [eventOf(deps, tenant, 'event-target.created', subject, { types: wanted })],
        signal,
      );
      return view(tenant, { ...at, value, version: 1 }, signal);
    },

    async get(caller, id, signal) {
      mustHave(caller, 'webhooks:read');
      return view(caller.tenant, await find(caller.tenant, id, signal), signal);
    },

    async list(caller, page = {}, signal) {
      mustHave(caller, 'webhooks:read');
      const { tenant } = caller;
      return pageOf<EventTargetRecord, EventTargetView>(
        store,
        ofTenant(tenant),
        page,
        (item) => view(tenant, item, signal),
        signal,
      );
    },

    async change(caller, id, change, { ifVersion } = {}, signal) {
      mustHave(caller, 'webhooks:write');
      const { tenant } = caller;
      const item = await untilWritten(async () => {
        const before = await find(tenant, id, signal);
        const { pk, sk, version } = before;
        if (ifVersion !== undefined && ifVersion !== version) {
          throw new AppError('precondition_failed', `event target ${id} has version ${version}, not ${ifVersion}`);
        }
        const value = changed(before.value, change);
        const events = changeEvents(deps, tenant, { before: before.value, after: value, plain });
        if (events.length === 0) return before;
        await store.transact(
          [
            { op: 'update', pk, sk, value, ifVersion: version },
            auditOp(deps, caller, {
              action: 'event-target.change',
              subject: subjectOf(id),
              before: told(before.value),
              after: told(value),
            }),
            ...(before.value.disabled && !value.disabled ? await forgetFailing(deps, tenant, id, signal) : []),
          ],
          events,
          signal,
        );
        return { ...before, value, version: version + 1 };
      }, signal);
      return view(tenant, item, signal);
    },

    async delete(caller, id, signal) {
      mustHave(caller, 'webhooks:write');
      const { tenant } = caller;
      return untilWritten(async () => {
        const item = await find(tenant, id, signal);
        const before = await view(tenant, item, signal);
        const { pk, sk, version, value } = item;
        await store.transact(
          [
            { op: 'delete', pk, sk, ifVersion: version },
            ...(await forgetFailing(deps, tenant, id, signal)),
            auditOp(deps, caller, { action: 'event-target.delete', subject: subjectOf(id), before: told(value) }),
          ],
          [eventOf(deps, tenant, 'event-target.deleted', subjectOf(id))],
          signal,
        );
        return before;
      }, signal);
    },
  };
}
