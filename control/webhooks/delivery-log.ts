/**
 * Deliveries for the people whose webhooks or event targets they are: listed, read, sent again, made as a test. What makes events leave needs
 * `events:read` besides: a key sends out nothing that it may not read.
 */
import { AppError } from '#shared/errors/app-error.ts';
import { type Caller, mustHave } from '../access/caller.ts';
import { auditOps, eventOf } from '../audit/record.ts';
import { testType, typeName } from '../events/cloud-event.ts';
import type { ControlDeps, PageRequest } from '../model/deps.ts';
import { type Item, type Op, type Page, withPrefix } from '../ports/store.ts';
import { key, partition } from '../store/keys.ts';
import { decodeCursor, encodeCursor, listOf, pageOf } from '../store/pages.ts';
import { earlier, remembered } from '../store/repeat.ts';
import { untilWritten } from '../store/until-written.ts';
import { moveOps, planOps, replayed } from './deliveries.ts';
import { loadReceiver, type ReceiverKind, subjectOf } from './receivers.ts';
import type { Attempt, DeliveryRecord, DeliveryState } from './records.ts';

export interface DeliveryView {
  /** That of the event. */
  readonly id: string;
  readonly receiver: string;
  readonly type: string;
  readonly subject: string;
  readonly state: DeliveryState;
  readonly attempts: number;
  readonly createdAt: number;
  /** While pending. */
  readonly nextAttemptAt?: number;
  readonly last?: Attempt;
}

export interface DeliveryLog {
  /** Newest first. */
  list(
    caller: Caller,
    receiver: string,
    page?: PageRequest & { readonly state?: DeliveryState },
    signal?: AbortSignal,
  ): Promise<Page<DeliveryView>>;
  get(caller: Caller, receiver: string, delivery: string, signal?: AbortSignal): Promise<DeliveryView>;
  /** Sends a test event to this receiver, once. */
  test(caller: Caller, receiver: string, signal?: AbortSignal): Promise<DeliveryView>;
  /** Replays from the first attempt and at once, regardless of the earlier outcome. Refused while the receiver is disabled. */
  replay(caller: Caller, receiver: string, delivery: string, signal?: AbortSignal): Promise<DeliveryView>;
  /** The dead letters, some at a time: ask again with the cursor until there is none. Refused while it is disabled. */
  replayDead(caller: Caller, receiver: string, cursor?: string, signal?: AbortSignal): Promise<Replayed>;
}

interface Replayed {
  readonly replayed: number;
  readonly cursor?: string;
}

/** Three operations each, and an audit record and an event beside them. */
const replayedAtOnce = 30;

const viewOf = ({ receiver, event, state, attempts, createdAt, dueAt, last }: DeliveryRecord): DeliveryView => ({
  id: event.id,
  receiver,
  type: typeName(event.type),
  subject: event.subject,
  state,
  attempts,
  createdAt,
  ...(dueAt === undefined ? {} : { nextAttemptAt: dueAt }),
  ...(last === undefined ? {} : { last }),
});

export function createDeliveryLog(deps: Pick<ControlDeps, 'store' | 'clock' | 'ids'>, kind: ReceiverKind): DeliveryLog {
  const { store, clock, ids } = deps;
  /** Wakes the deliverer. */
  const dueEvent = (tenant: string, receiver: string) => eventOf(deps, tenant, 'webhook.due', subjectOf(receiver));
  const find = (tenant: string, id: string, signal?: AbortSignal) => loadReceiver(deps, kind, tenant, id, signal);
  const everything = (tenant: string, receiver: string) => ({
    partition: partition.deliveries(tenant),
    ...withPrefix(`${receiver}/`),
    reverse: true,
  });

  async function load(tenant: string, receiver: string, id: string, signal?: AbortSignal) {
    await find(tenant, receiver, signal);
    const { pk, sk } = key.delivery(tenant, receiver, id);
    const item = await store.get<DeliveryRecord>(pk, sk, signal);
    if (!item) throw new AppError('not_found', `there is no delivery ${JSON.stringify(id)}`, { detail: { id } });
    return item;
  }

  async function mustBeEnabled(tenant: string, id: string, signal?: AbortSignal): Promise<void> {
    const { value } = await find(tenant, id, signal);
    if (value.disabled) {
      throw new AppError(
        kind.disabledCode,
        `${kind.words} ${id} is disabled: ${value.disabled.reason}; enable it first`,
      );
    }
  }

  return {
    async list(caller, receiver, page = {}, signal) {
      mustHave(caller, 'webhooks:read');
      await find(caller.tenant, receiver, signal);
      return pageOf<DeliveryRecord, DeliveryView>(
        store,
        everything(caller.tenant, receiver),
        page,
        ({ value }) => (page.state === undefined || page.state === value.state ? viewOf(value) : undefined),
        signal,
      );
    },

    async get(caller, receiver, delivery, signal) {
      mustHave(caller, 'webhooks:read');
      return viewOf((await load(caller.tenant, receiver, delivery, signal)).value);
    },

    async test(caller, receiver, signal) {
      mustHave(caller, 'webhooks:write');
      const { tenant } = caller;
      const before = earlier<DeliveryView>(caller);
      if (before) return before;
      await find(tenant, receiver, signal);
      const now = clock.now();
      const subject = subjectOf(receiver);
      const data = { message: `a test of this ${kind.words}` };
      const event = { id: ids.next('ev'), type: testType, subject, at: now, data };
      const pending = {
        receiver,
        event,
        createdAt: now,
        state: 'pending',
        attempts: 0,
        failures: 0,
        dueAt: now,
      } as const;
      await store.transact(
        [
          ...planOps({ tenant, now }, { receiver, event, createdAt: now }),
          ...auditOps(deps, caller, { action: `${kind.name}.test`, subject, after: { delivery: event.id } }),
          ...remembered(caller, viewOf(pending)),
        ],
        [dueEvent(tenant, receiver)],
        signal,
      );
      return viewOf((await load(tenant, receiver, event.id, signal)).value);
    },

    async replay(caller, receiver, delivery, signal) {
      mustHave(caller, 'webhooks:write');
      mustHave(caller, 'events:read');
      const { tenant } = caller;
      const before = earlier<DeliveryView>(caller);
      if (before) return before;
      await mustBeEnabled(tenant, receiver, signal);
      return untilWritten(async () => {
        const item = await load(tenant, receiver, delivery, signal);
        const now = clock.now();
        const value = replayed(item.value, now);
        await store.transact(
          [
            ...moveOps({ tenant, now }, item, value),
            ...auditOps(deps, caller, {
              action: `${kind.name}.replay`,
              subject: subjectOf(receiver),
              after: { delivery },
            }),
            ...remembered(caller, viewOf(value)),
          ],
          [dueEvent(tenant, receiver)],
          signal,
        );
        return viewOf(value);
      }, signal);
    },

    async replayDead(caller, receiver, cursor, signal) {
      mustHave(caller, 'webhooks:write');
      mustHave(caller, 'events:read');
      const { tenant } = caller;
      const before = earlier<Replayed>(caller);
      if (before) return before;
      const dead = `dead ${listOf(everything(tenant, receiver))}`;
      const from = decodeCursor(dead, cursor);
      await mustBeEnabled(tenant, receiver, signal);
      return untilWritten(async () => {
        const query = { ...everything(tenant, receiver), limit: 200, ...(from === undefined ? {} : { cursor: from }) };
        const page = await store.query<DeliveryRecord>(query, signal);
        const found: Item<DeliveryRecord>[] = page.items.filter(({ value }) => value.state === 'dead');
        const taken = found.slice(0, replayedAtOnce);
        const last = taken.at(-1);
        // Where the next call goes on: behind what was taken, or behind all that was looked at.
        const next = found.length > taken.length && last ? last.sk : page.cursor;
        const now = clock.now();
        const answer: Replayed = {
          replayed: taken.length,
          ...(next === undefined ? {} : { cursor: encodeCursor(dead, next) }),
        };
        const ops: Op[] = taken.flatMap((item) => moveOps({ tenant, now }, item, replayed(item.value, now)));
        if (ops.length > 0) {
          const after = { deliveries: taken.length };
          await store.transact(
            [
              ...ops,
              ...auditOps(deps, caller, { action: `${kind.name}.replay`, subject: subjectOf(receiver), after }),
              ...remembered(caller, answer),
            ],
            [dueEvent(tenant, receiver)],
            signal,
          );
        }
        return answer;
      }, signal);
    },
  };
}
