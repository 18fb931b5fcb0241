/** Reading the outbox in order without ever stepping over what may still come; see `outbox-item.ts`. */
import { QueryCommand } from '@aws-sdk/client-dynamodb';
import { sharedByMany } from '#shared/async/abort-scope.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { OutboxEvent } from '../../ports/store.ts';
import { type Attributes, textOf } from './item.ts';
import {
  closedAtOnce,
  graceMs,
  type Place,
  placeOf,
  placesAfter,
  positionText,
  settledMs,
  streamPartition,
  streamsPartition,
} from './outbox-item.ts';
import { closePlace, type TableRef } from './outbox-positions.ts';

interface Range {
  readonly partition: string;
  readonly from: string;
  readonly to: string;
  readonly limit: number;
  readonly reverse?: boolean;
}

async function page(
  { client, tableName }: TableRef,
  { partition, from, to, limit, reverse = false }: Range,
  signal?: AbortSignal,
): Promise<{ readonly items: readonly Attributes[]; readonly more: boolean }> {
  const { Items = [], LastEvaluatedKey } = await client.send(
    new QueryCommand({
      TableName: tableName,
      KeyConditionExpression: 'pk = :pk AND sk BETWEEN :from AND :to',
      ExpressionAttributeValues: { ':pk': { S: partition }, ':from': { S: from }, ':to': { S: to } },
      ConsistentRead: true,
      ScanIndexForward: !reverse,
      Limit: limit,
    }),
    signal === undefined ? {} : { abortSignal: sharedByMany(signal) },
  );
  return { items: Items, more: LastEvaluatedKey !== undefined };
}

async function placesOf(
  ref: TableRef,
  stream: string,
  range: Omit<Range, 'partition'>,
  signal?: AbortSignal,
): Promise<{ readonly places: readonly Place[]; readonly more: boolean }> {
  const { items, more } = await page(ref, { partition: streamPartition(stream), ...range }, signal);
  return { places: items.map(placeOf), more };
}

/** Whether places between `expected` and this one may still be taken. */
const hasOpenBefore = ({ n, prev }: Place, expected: number, now: number): boolean =>
  n > expected && prev !== undefined && prev >= now - settledMs;

/** What is farther in front than anybody can be late is settled, which the lowest closed place says by naming no `prev`. */
async function closeBefore(ref: TableRef, stream: string, expected: number, behind: Place): Promise<void> {
  const lowest = Math.max(expected, behind.n - closedAtOnce);
  await Promise.all(
    Array.from({ length: behind.n - lowest }, (_, i) => {
      const n = lowest + i;
      const { takenAt, prev } = behind;
      const end = n === lowest && lowest > expected;
      return closePlace(ref, stream, { n, takenAt, ...(prev === undefined || end ? {} : { prev }) });
    }),
  );
}

/** Events of one stream after position `after`, at most `limit`. */
async function readStream(
  ref: TableRef,
  stream: string,
  after: number,
  limit: number,
  signal?: AbortSignal,
): Promise<readonly Place[]> {
  const found: Place[] = [];
  let last = after;
  for (;;) {
    const { places, more } = await placesOf(ref, stream, { ...placesAfter(last), limit }, signal);
    const now = ref.clock.now();
    const open = places.find((place, i) => hasOpenBefore(place, (places[i - 1]?.n ?? last) + 1, now));
    for (const place of places) {
      if (place === open) break;
      last = place.n;
      if (place.event !== undefined && place.expiresAt > now) found.push(place);
      if (found.length === limit) return found;
    }
    if (open === undefined && !more) return found;
    if (open === undefined) continue;
    if (now - open.takenAt < graceMs) return found;
    await closeBefore(ref, stream, last + 1, open);
  }
}

/** The last position of a stream, with nothing left open in front of it. */
async function newestOf(ref: TableRef, stream: string, signal?: AbortSignal): Promise<number> {
  const range = { ...placesAfter(0), limit: closedAtOnce + 1, reverse: true };
  const { places, more } = await placesOf(ref, stream, range, signal);
  const now = ref.clock.now();
  const oldest = places.length - 1;
  for (const [i, place] of places.entries()) {
    const expected = i < oldest ? (places[i + 1]?.n ?? 0) + 1 : more ? place.n : 1;
    if (hasOpenBefore(place, expected, now)) await closeBefore(ref, stream, expected, place);
  }
  return places[0]?.n ?? 0;
}

async function streams(ref: TableRef, signal?: AbortSignal): Promise<readonly string[]> {
  const names: string[] = [];
  let from = ' ';
  for (;;) {
    const { items, more } = await page(ref, { partition: streamsPartition, from, to: '~', limit: 1_000 }, signal);
    for (const { sk } of items) names.push(textOf(sk));
    if (!more) return names;
    from = `${names.at(-1)} `;
  }
}

/** A position in one stream is a number; over all streams it is a number for each of them. */
type Vector = ReadonlyMap<string, number>;
const vectorText = (vector: Vector): string =>
  `v${Buffer.from(JSON.stringify(Object.fromEntries(vector))).toString('base64url')}`;

function vectorOf(cursor: string): Vector {
  if (!cursor.startsWith('v')) throw badCursor(cursor);
  try {
    const parsed = JSON.parse(Buffer.from(cursor.slice(1), 'base64url').toString('utf8')) as Record<string, number>;
    return new Map(Object.entries(parsed));
  } catch {
    throw badCursor(cursor);
  }
}

const badCursor = (cursor: string): AppError =>
  new AppError('cursor_unknown', `cursor ${JSON.stringify(cursor)} is not one that this list handed out`, {
    detail: { field: 'cursor', value: cursor },
  });

function positionIn(cursor: string | undefined, stream: string): number {
  if (cursor === undefined) return 0;
  if (/^\d{16}$/.test(cursor)) return Number(cursor);
  return vectorOf(cursor).get(stream) ?? 0;
}

/** Of one stream: what a tenant's feed reads. */
export async function readOne(
  ref: TableRef,
  stream: string,
  { after, limit }: { readonly after: string | undefined; readonly limit: number },
  signal?: AbortSignal,
): Promise<readonly OutboxEvent[]> {
  const found = await readStream(ref, stream, positionIn(after, stream), limit, signal);
  return found.flatMap(({ event, n }) => (event ? [{ ...event, cursor: positionText(n) }] : []));
}

/**
 * Of all streams, by the writers' clocks; within a stream by position. The cursor grows with the number of streams: for tests, tools and small
 * tables. In the cloud the table's own stream brings events to the bus.
 */
export async function readAll(
  ref: TableRef,
  { after, limit }: { readonly after: string | undefined; readonly limit: number },
  signal?: AbortSignal,
): Promise<readonly OutboxEvent[]> {
  const seen = new Map(after === undefined ? [] : vectorOf(after));
  const names = await streams(ref, signal);
  const queues = await Promise.all(
    names.map(async (name) => ({
      name,
      places: [...(await readStream(ref, name, seen.get(name) ?? 0, limit, signal))],
    })),
  );
  const found: OutboxEvent[] = [];
  while (found.length < limit) {
    const [first] = queues
      .filter((queue) => queue.places.length > 0)
      .sort((a, b) => (a.places[0]?.order ?? 0) - (b.places[0]?.order ?? 0));
    const place = first?.places.shift();
    if (first === undefined || place?.event === undefined) break;
    seen.set(first.name, place.n);
    found.push({ ...place.event, cursor: vectorText(seen) });
  }
  return found;
}

export async function newestCursor(ref: TableRef, stream?: string, signal?: AbortSignal): Promise<string> {
  if (stream !== undefined) return positionText(await newestOf(ref, stream, signal));
  const names = await streams(ref, signal);
  const newest = await Promise.all(names.map(async (name) => [name, await newestOf(ref, name, signal)] as const));
  return vectorText(new Map(newest));
}
