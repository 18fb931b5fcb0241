/** Event targets of a tenant: its own event buses and queues at AWS. Made, read, changed, deleted. */
import { externalIdOf, parseRoleArn, parseTargetArn, roleNamePrefix } from '#shared/domain/event-target-arn.ts';
import { AppError } from '#shared/errors/app-error.ts';
import { type Caller, mustHave } from '../access/caller.ts';
import type { ControlDeps, PageRequest } from '../model/deps.ts';
import type { Item, Page } from '../ports/store.ts';
import { earlier } from '../store/repeat.ts';
import { createReceiverRegistry } from './receiver-registry.ts';
import { eventTargetKind } from './receivers.ts';
import type { EventTargetRecord, EventTargetView } from './records.ts';
import { checkTypes } from './subscription.ts';

interface NewEventTarget {
  /** Of a bus or a queue. */
  readonly arn: string;
  /** In the same account, trusting this broker for this tenant. */
  readonly roleArn: string;
  /** `*`, types or groups of types. */
  readonly types: readonly string[];
  readonly description?: string;
}

/** What it points at stays: another bus or queue is another target, with deliveries of its own. */
interface EventTargetChange extends Partial<Omit<NewEventTarget, 'arn'>> {
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
  const { clock, ids, eventTargetSender } = deps;

  function mustBeAble(): void {
    if (eventTargetSender) return;
    throw new AppError(
      'event_targets_unavailable',
      'this broker has no event targets: it has no identity at AWS; use a webhook',
    );
  }

  const view = (
    tenant: string,
    { value, version }: Item<EventTargetRecord>,
    failingSince?: number,
  ): EventTargetView => ({
    ...value,
    type: parseTargetArn(value.arn)?.type ?? 'sqs',
    externalId: externalIdOf(tenant),
    principal: eventTargetSender?.principal ?? '',
    ...(failingSince === undefined ? {} : { failingSince }),
    version,
  });

  const registry = createReceiverRegistry<EventTargetRecord, EventTargetView, EventTargetChange>(deps, {
    kind: eventTargetKind,
    view,
    own({ arn }, { roleArn }) {
      if (roleArn === undefined) return {};
      checkArns(arn, roleArn);
      return { roleArn };
    },
    plain: ({ roleArn, types, description }) => [roleArn, types, description],
    told: ({ arn, roleArn, types, description, disabled }) => ({
      arn,
      roleArn,
      types,
      description,
      enabled: disabled === undefined,
    }),
  });

  return {
    async create(caller, { arn, roleArn, types, description = '' }, signal) {
      mustHave(caller, 'webhooks:write');
      mustBeAble();
      const before = earlier<EventTargetView>(caller);
      if (before) return before;
      const { tenant } = caller;
      checkArns(arn, roleArn);
      const wanted = checkTypes(types);
      await registry.mustHaveRoom(tenant, signal);
      const value: EventTargetRecord = {
        id: ids.next(eventTargetKind.prefix),
        arn,
        roleArn,
        description,
        types: wanted,
        createdAt: clock.now(),
        createdBy: caller.principal,
      };
      return registry.add(caller, value, (shown) => shown, signal);
    },

    get: registry.get,
    list: registry.list,
    change: registry.change,

    async delete(caller, id, signal) {
      const { item, failingSince } = await registry.delete(caller, id, signal);
      return view(caller.tenant, item, failingSince);
    },
  };
}
