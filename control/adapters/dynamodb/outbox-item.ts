/**
 * Layout of the outbox in the table, and why its readers miss no event.
 *
 * Each stream is a partition. Its `head` counts positions; a writer takes one (an update outside its transaction, so writers of one
 * tenant never collide) and puts its event there in its transaction, on condition that the place is free. Taking and committing are two
 * moments, so a later position may be committed before an earlier one. A reader therefore never steps over a free place: it stops in front
 * of it, and once the event behind is older than `graceMs` it *closes* the place, whereupon the slow writer's transaction fails that
 * condition and is repeated at a new position. Hence a position that a reader has stepped over never changes, by conditions and not by clocks.
 *
 * Clocks decide one thing only: old events are dropped by the table's time to live, which leaves free places too. Each event says when
 * the position before it was taken (`prev`); if that is longer ago than `settledMs`, all places before it are settled and nothing is
 * closed. A writer gives a position up after `positionLifeMs`, and AWS refuses a request signed five minutes ago: far less.
 */
import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import * as z from 'zod';
import type { NewEvent } from '../../ports/store.ts';
import { type Attributes, expiryOf, numberOf, textOf } from './item.ts';

export const keptMs = 24 * 3_600_000;
export const graceMs = 1_000;
export const settledMs = 3_600_000;
export const positionLifeMs = 5_000;
/** Places in front of one event that may be open at once: positions of one stream in flight, at the very most. */
export const closedAtOnce = 100;

/** The port's keys are ASCII: no item of a caller can lie here. */
export const streamsPartition = '§outbox';
export const streamPartition = (stream: string): string => `${streamsPartition}/${stream}`;
export const headKey = (stream: string): Attributes => ({ pk: { S: streamPartition(stream) }, sk: { S: 'head' } });

export const positionText = (n: number): string => String(n).padStart(16, '0');
const placePrefix = 'e/';
const placeKey = (stream: string, n: number): Attributes => ({
  pk: { S: streamPartition(stream) },
  sk: { S: placePrefix + positionText(n) },
});
/** Sort keys of all places after `n`, inclusive bounds. */
export const placesAfter = (n: number): { readonly from: string; readonly to: string } => ({
  from: placePrefix + positionText(n + 1),
  to: `${placePrefix}\x7f`,
});

export interface Position {
  readonly n: number;
  /** When it was taken, and when the one before it was; undefined for the first of a stream. */
  readonly takenAt: number;
  readonly prev?: number;
}

export function eventItem(event: NewEvent, { n, takenAt, prev }: Position, order: number): Attributes {
  return {
    ...placeKey(event.stream, n),
    kind: { S: 'event' },
    val: { S: JSON.stringify(event) },
    taken: { N: String(takenAt) },
    ...(prev === undefined ? {} : { prev: { N: String(prev) } }),
    ord: { N: String(order) },
    ...expiryOf(event.at + keptMs),
  };
}

/** Outlives every event that could have come here. The times may be later than they were, never earlier. */
export const closedItem = (stream: string, { n, takenAt, prev }: Position, now: number): Attributes => ({
  ...placeKey(stream, n),
  kind: { S: 'closed' },
  taken: { N: String(takenAt) },
  ...(prev === undefined ? {} : { prev: { N: String(prev) } }),
  ...expiryOf(now + 2 * keptMs),
});

export interface Place {
  readonly n: number;
  readonly takenAt: number;
  readonly prev?: number;
  readonly order: number;
  readonly expiresAt: number;
  /** Undefined: closed. */
  readonly event?: NewEvent;
}

export function placeOf(item: Attributes): Place {
  const prev = numberOf(item.prev);
  return {
    n: Number(textOf(item.sk).slice(placePrefix.length)),
    takenAt: numberOf(item.taken) ?? 0,
    ...(prev === undefined ? {} : { prev }),
    order: numberOf(item.ord) ?? 0,
    expiresAt: numberOf(item.exp) ?? Number.POSITIVE_INFINITY,
    ...(item.kind?.S === 'event' ? { event: parseEvent(textOf(item.val)) } : {}),
  };
}

const StoredEvent = z.object({
  id: z.string(),
  stream: z.string(),
  type: z.string(),
  subject: z.string(),
  at: z.number(),
  data: z.record(z.string(), z.unknown()),
});
const parseEvent = (text: string): NewEvent => StoredEvent.parse(JSON.parse(text));

/** Of a record of the table's stream: undefined when it is no new event. */
export function eventOfImage(image: Readonly<Record<string, AttributeValue>> | undefined): NewEvent | undefined {
  if (image?.kind?.S !== 'event' || image.val?.S === undefined) return undefined;
  return parseEvent(image.val.S);
}
