/**
 * Events from the outbox to an EventBridge bus. PutEvents is not atomic: it takes what it can and says which entries it refused, so exactly
 * those are sent again.
 */
import { type EventBridgeClient, PutEventsCommand, type PutEventsRequestEntry } from '@aws-sdk/client-eventbridge';
import type { Log } from '#shared/ports/log.ts';
import type { NewEvent } from '../../ports/store.ts';
import type { Backoff } from '../dynamodb/backoff.ts';

export interface Publisher {
  /** Publishes what it can. The answer names the events that could not be: their positions in `events`, ascending. Never throws for them. */
  publish(events: readonly NewEvent[], signal?: AbortSignal): Promise<readonly number[]>;
}

export interface PublisherOptions {
  readonly client: EventBridgeClient;
  readonly busName: string;
  /** `source` of every entry. */
  readonly source: string;
  readonly detailOf: (event: NewEvent) => Readonly<Record<string, unknown>>;
  readonly backoff: Backoff;
  readonly log: Log;
  /** Attempts at one entry. Default 4: the caller's own repetition comes after. */
  readonly maxAttempts?: number;
}

/** Limits of one call. */
export const maxEntries = 10;
export const maxCallBytes = 256 * 1024;

/** The same entry would be refused again. */
const final = new Set(['MalformedDetail', 'InvalidArgument', 'NotAuthorizedForSourceException']);

interface Pending {
  readonly index: number;
  readonly entry: PutEventsRequestEntry;
  readonly bytes: number;
}

interface Outcome {
  readonly again: readonly Pending[];
  readonly never: readonly Pending[];
}

export function createPublisher(options: PublisherOptions): Publisher {
  const { client, busName, source, detailOf, backoff, log, maxAttempts = 4 } = options;

  function pendingOf(event: NewEvent, index: number): Pending {
    const entry = {
      EventBusName: busName,
      Source: source,
      DetailType: event.type,
      Detail: JSON.stringify(detailOf(event)),
      Time: new Date(event.at),
    };
    // As AWS counts it: time, source, type, detail.
    return { index, entry, bytes: 14 + Buffer.byteLength(source + entry.DetailType + entry.Detail) };
  }

  async function call(batch: readonly Pending[], signal: AbortSignal | undefined): Promise<Outcome> {
    try {
      const { Entries = [] } = await client.send(
        new PutEventsCommand({ Entries: batch.map(({ entry }) => entry) }),
        signal === undefined ? {} : { abortSignal: signal },
      );
      const refused = batch.flatMap((one, i) => {
        const { EventId, ErrorCode = 'no answer' } = Entries[i] ?? {};
        return EventId === undefined ? [{ one, code: ErrorCode }] : [];
      });
      if (refused.length > 0) {
        log.warn('the bus refused events', {
          refused: refused.length,
          codes: [...new Set(refused.map((r) => r.code))],
        });
      }
      return {
        again: refused.flatMap(({ one, code }) => (final.has(code) ? [] : [one])),
        never: refused.flatMap(({ one, code }) => (final.has(code) ? [one] : [])),
      };
    } catch (error) {
      signal?.throwIfAborted();
      log.error('publishing failed', error, { events: batch.length });
      return { again: batch, never: [] };
    }
  }

  return {
    async publish(events, signal) {
      const failed: number[] = [];
      let pending = events.map(pendingOf);
      for (let attempt = 1; pending.length > 0; attempt += 1) {
        const again: Pending[] = [];
        for (const batch of batches(pending)) {
          const outcome = await call(batch, signal);
          again.push(...outcome.again);
          failed.push(...outcome.never.map(({ index }) => index));
        }
        if (attempt === maxAttempts) failed.push(...again.map(({ index }) => index));
        pending = attempt === maxAttempts ? [] : again;
        if (pending.length > 0) await backoff(attempt, signal);
      }
      return failed.sort((a, b) => a - b);
    },
  };
}

/** At most ten entries and 256 KB each; one that is larger alone goes alone and is refused by name. */
export function batches<T extends { readonly bytes: number }>(pending: readonly T[]): readonly (readonly T[])[] {
  const made: T[][] = [];
  let bytes = Number.POSITIVE_INFINITY;
  for (const one of pending) {
    const last = made.at(-1);
    if (last === undefined || last.length === maxEntries || bytes + one.bytes > maxCallBytes) {
      made.push([one]);
      bytes = one.bytes;
    } else {
      last.push(one);
      bytes += one.bytes;
    }
  }
  return made;
}
