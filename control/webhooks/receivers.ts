/** What webhooks and event targets have in common: found by id, switched off by the broker, failing or not. They lie in one partition, so that an event finds all of them with one query. */
import { AppError } from '#shared/errors/app-error.ts';
import { auditOps, eventOf, systemPrincipal } from '../audit/record.ts';
import type { ControlDeps } from '../model/deps.ts';
import type { Item, Op } from '../ports/store.ts';
import { key } from '../store/keys.ts';
import { untilWritten } from '../store/until-written.ts';
import type { FailingRecord, ReceiverRecord } from './records.ts';

export interface ReceiverKind {
  /** In audit actions, event types and subjects. */
  readonly name: 'webhook' | 'event-target';
  readonly words: string;
  /** Of its ids. */
  readonly prefix: 'wh' | 'et';
  readonly disabledCode: 'webhook_disabled' | 'event_target_disabled';
}

export const webhookKind: ReceiverKind = {
  name: 'webhook',
  words: 'webhook',
  prefix: 'wh',
  disabledCode: 'webhook_disabled',
};
export const eventTargetKind: ReceiverKind = {
  name: 'event-target',
  words: 'event target',
  prefix: 'et',
  disabledCode: 'event_target_disabled',
};

export const kindOf = (id: string): ReceiverKind =>
  id.startsWith(`${eventTargetKind.prefix}_`) ? eventTargetKind : webhookKind;

export const subjectOf = (id: string): string => `${kindOf(id).name}/${id}`;

/** Each, of a tenant. */
export const maxReceivers = 20;

type Deps = Pick<ControlDeps, 'store' | 'clock' | 'ids'>;

/** `not_found`, also when there is something of the other kind. */
export async function loadReceiver<R extends ReceiverRecord>(
  { store }: Pick<Deps, 'store'>,
  kind: ReceiverKind,
  tenant: string,
  id: string,
  signal?: AbortSignal,
): Promise<Item<R>> {
  const { pk, sk } = key.webhook(tenant, id);
  const item = id.startsWith(`${kind.prefix}_`) ? await store.get<R>(pk, sk, signal) : undefined;
  if (!item) throw new AppError('not_found', `there is no ${kind.words} ${JSON.stringify(id)}`, { detail: { id } });
  return item;
}

/** The broker does it by itself. Once: a later attempt finds it disabled. */
export async function disableReceiver(
  deps: Deps,
  tenant: string,
  id: string,
  reason: string,
  signal?: AbortSignal,
): Promise<void> {
  const { store, clock } = deps;
  const { name } = kindOf(id);
  await untilWritten(async () => {
    const at = key.webhook(tenant, id);
    const item = await store.get<ReceiverRecord>(at.pk, at.sk, signal);
    if (!item || item.value.disabled) return;
    const value: ReceiverRecord = { ...item.value, disabled: { at: clock.now(), reason } };
    const subject = subjectOf(id);
    await store.transact(
      [
        { op: 'update', ...at, value, ifVersion: item.version },
        ...auditOps(deps, systemPrincipal(tenant), { action: `${name}.disable`, subject, after: { reason } }),
      ],
      [eventOf(deps, tenant, `${name}.disabled`, subject, { reason })],
      signal,
    );
  }, signal);
}

const switchedOff = 'switched off';

/** Switched by its owner, or left as it is. */
export function switched(
  { disabled }: ReceiverRecord,
  enabled: boolean | undefined,
  now: number,
): Pick<ReceiverRecord, 'disabled'> {
  const off = enabled === undefined ? disabled : enabled ? undefined : (disabled ?? { at: now, reason: switchedOff });
  return off === undefined ? {} : { disabled: off };
}

/** `plain`: what a change of says `changed`. */
export function changeEvents<R extends ReceiverRecord>(
  deps: Deps,
  tenant: string,
  { before, after, plain }: { readonly before: R; readonly after: R; readonly plain: (record: R) => unknown },
) {
  const { name } = kindOf(after.id);
  const subject = subjectOf(after.id);
  const events = [];
  if (before.disabled && !after.disabled) events.push(eventOf(deps, tenant, `${name}.enabled`, subject));
  if (!before.disabled && after.disabled)
    events.push(eventOf(deps, tenant, `${name}.disabled`, subject, { reason: after.disabled.reason }));
  if (JSON.stringify(plain(before)) !== JSON.stringify(plain(after)))
    events.push(eventOf(deps, tenant, `${name}.changed`, subject, { types: after.types }));
  return events;
}

/** Is there while every attempt fails. */
export async function loadFailing(
  { store }: Pick<Deps, 'store'>,
  tenant: string,
  id: string,
  signal?: AbortSignal,
): Promise<Item<FailingRecord> | undefined> {
  const { pk, sk } = key.webhookFailing(tenant, id);
  return store.get<FailingRecord>(pk, sk, signal);
}

export const forgetFailing = (failing: Item<FailingRecord> | undefined): Op[] =>
  failing ? [{ op: 'delete', pk: failing.pk, sk: failing.sk, ifVersion: failing.version }] : [];
