/** Deliveries as items: planned once per receiver and event, claimed, ended. Every step is one transaction, so a crash between two leaves one that is due. */
import { codeOf } from '#shared/errors/app-error.ts';
import type { DueDelivery } from '../model/due-delivery.ts';
import type { Item, Key, Op, Store } from '../ports/store.ts';
import { key } from '../store/keys.ts';
import type { Attempt, DeliveryRecord } from './records.ts';
import { claimMs, deadKeptMs, deliveredKeptMs } from './schedule.ts';

/** Of a delivery that is pending, forever if the receiver is deleted. */
const pendingKeptMs = deadKeptMs;

export interface Place {
  readonly tenant: string;
  readonly now: number;
}

/** In the order of its receiver, and where sweeps look. */
const placesOf = (tenant: string, receiver: string, at: number, event: string): readonly Key[] => [
  key.deliveryDue(tenant, receiver, at, event),
  key.receiverDue(tenant, receiver, at, event),
];

const dueOps = ({ tenant, now }: Place, { receiver, event }: DeliveryRecord, at: number): Op[] =>
  placesOf(tenant, receiver, at, event.id).map((place) => ({
    op: 'put',
    ...place,
    value: { receiver, event: event.id } satisfies DueDelivery,
    expiresAt: now + pendingKeptMs,
  }));

/** Both are written once, hence version 1. */
export const undueOps = (tenant: string, receiver: string, at: number, event: string): Op[] =>
  placesOf(tenant, receiver, at, event).map((place) => ({ op: 'delete', ...place, ifVersion: 1 }));

/** Due now. */
export function planOps(
  place: Place,
  planned: Omit<DeliveryRecord, 'state' | 'dueAt' | 'failures' | 'attempts'>,
): Op[] {
  const value: DeliveryRecord = { ...planned, state: 'pending', dueAt: place.now, failures: 0, attempts: 0 };
  const at = key.delivery(place.tenant, value.receiver, value.event.id);
  return [{ op: 'put', ...at, value, expiresAt: place.now + pendingKeptMs }, ...dueOps(place, value, place.now)];
}

/** From one state to the next, with its places in the order of coming work. */
export function moveOps(place: Place, { pk, sk, version, value }: Item<DeliveryRecord>, next: DeliveryRecord): Op[] {
  const { tenant, now } = place;
  const keptMs = next.state === 'delivered' ? deliveredKeptMs : deadKeptMs;
  const moved = value.dueAt !== next.dueAt;
  return [
    { op: 'update', pk, sk, value: next, ifVersion: version, expiresAt: now + keptMs },
    ...(moved && value.dueAt !== undefined ? undueOps(tenant, value.receiver, value.dueAt, value.event.id) : []),
    ...(moved && next.dueAt !== undefined ? dueOps(place, next, next.dueAt) : []),
  ];
}

const without = ({ dueAt: _, ...rest }: DeliveryRecord): Omit<DeliveryRecord, 'dueAt'> => rest;

/** After the claim timeout another process takes over from a crashed claimant. */
export const claimed = (value: DeliveryRecord, now: number): DeliveryRecord => ({
  ...value,
  attempts: value.attempts + 1,
  dueAt: now + claimMs,
});

export const delivered = (value: DeliveryRecord, last: Attempt): DeliveryRecord => ({
  ...without(value),
  state: 'delivered',
  last,
});

/** `dueAt` undefined: nothing more is tried. */
export const failed = (value: DeliveryRecord, last: Attempt, dueAt: number | undefined): DeliveryRecord => ({
  ...without(value),
  state: dueAt === undefined ? 'dead' : 'pending',
  failures: value.failures + 1,
  last,
  ...(dueAt === undefined ? {} : { dueAt }),
});

/** Given up without another attempt. */
export const givenUp = (value: DeliveryRecord, now: number, error: string): DeliveryRecord => ({
  ...without(value),
  state: 'dead',
  last: { ...value.last, at: now, durationMs: 0, error },
});

/** From the beginning, at once. */
export const replayed = (value: DeliveryRecord, now: number): DeliveryRecord => ({
  ...value,
  state: 'pending',
  failures: 0,
  dueAt: now,
});

/** False when another process changed the delivery meanwhile and has taken over. */
export async function transacted(store: Store, ops: readonly Op[], signal?: AbortSignal): Promise<boolean> {
  try {
    await store.transact(ops, [], signal);
    return true;
  } catch (error) {
    if (codeOf(error) !== 'version_conflict') throw error;
    return false;
  }
}
