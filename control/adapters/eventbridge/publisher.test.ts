import { EventBridgeClient, PutEventsCommand, type PutEventsRequestEntry } from '@aws-sdk/client-eventbridge';
import { mockClient } from 'aws-sdk-client-mock';
import fc from 'fast-check';
import { beforeEach, expect, test } from 'vitest';
import { silentLog } from '#shared/ports/log.ts';
import type { NewEvent } from '../../ports/store.ts';
import { batches, createPublisher, maxCallBytes, maxEntries } from './publisher.ts';

const mock = mockClient(EventBridgeClient);
beforeEach(() => {
  mock.reset();
});

const publisher = (maxAttempts = 4) =>
  createPublisher({
    client: new EventBridgeClient({ region: 'eu-central-1' }),
    busName: 'bus',
    source: 'isthmus',
    detailOf: ({ id, data }) => ({ id, ...data }),
    backoff: async () => undefined,
    log: silentLog,
    maxAttempts,
  });

const event = (id: string, data: Record<string, unknown> = {}): NewEvent => ({
  id,
  stream: 'acme',
  type: 'peering.changed',
  subject: 'peering/pe_1',
  at: 0,
  data,
});

const idOf = ({ Detail }: PutEventsRequestEntry): string => JSON.parse(Detail ?? '').id;
const sent = (): string[][] =>
  mock.commandCalls(PutEventsCommand).map(({ args }) => (args[0].input.Entries ?? []).map(idOf));

/** Takes an entry or refuses it, per call. */
function answer(refuse: (id: string, call: number) => string | undefined): void {
  let call = 0;
  mock.on(PutEventsCommand).callsFake(({ Entries }: { Entries: PutEventsRequestEntry[] }) => {
    call += 1;
    const answers = Entries.map((entry) => {
      const ErrorCode = refuse(idOf(entry), call);
      return ErrorCode === undefined ? { EventId: 'taken' } : { ErrorCode, ErrorMessage: 'refused' };
    });
    return { FailedEntryCount: answers.filter(({ EventId }) => EventId === undefined).length, Entries: answers };
  });
}

test('sends again exactly those entries that were refused', async () => {
  answer((id, call) =>
    call === 1 && ['b', 'd'].includes(id)
      ? 'ThrottlingException'
      : call === 2 && id === 'd'
        ? 'InternalFailure'
        : undefined,
  );
  expect(await publisher().publish(['a', 'b', 'c', 'd'].map((id) => event(id)))).toEqual([]);
  expect(sent()).toEqual([['a', 'b', 'c', 'd'], ['b', 'd'], ['d']]);
});

test('names those that stay refused', async () => {
  answer((id) => (id === 'b' ? 'InternalFailure' : undefined));
  expect(await publisher(3).publish(['a', 'b', 'c'].map((id) => event(id)))).toEqual([1]);
  expect(sent()).toEqual([['a', 'b', 'c'], ['b'], ['b']]);
});

test('does not repeat what can never be taken', async () => {
  answer((id) => (id === 'b' ? 'MalformedDetail' : undefined));
  expect(await publisher().publish(['a', 'b'].map((id) => event(id)))).toEqual([1]);
  expect(sent()).toEqual([['a', 'b']]);
});

test('sends all of a call again that failed as a whole', async () => {
  mock
    .on(PutEventsCommand)
    .rejectsOnce(Object.assign(new Error('slow down'), { name: 'ThrottlingException' }))
    .rejectsOnce(Object.assign(new Error('socket hang up'), { name: 'TimeoutError' }))
    .resolves({ FailedEntryCount: 0, Entries: [{ EventId: '1' }, { EventId: '2' }] });
  expect(await publisher().publish([event('a'), event('b')])).toEqual([]);
  expect(sent()).toEqual([
    ['a', 'b'],
    ['a', 'b'],
    ['a', 'b'],
  ]);
});

test('of an answer that is too short, the rest counts as refused', async () => {
  mock
    .on(PutEventsCommand)
    .resolvesOnce({ Entries: [{ EventId: '1' }] })
    .resolves({ Entries: [{ EventId: '2' }] });
  expect(await publisher().publish([event('a'), event('b')])).toEqual([]);
  expect(sent()).toEqual([['a', 'b'], ['b']]);
});

test('stops when its caller gives up', async () => {
  const caller = new AbortController();
  mock.on(PutEventsCommand).callsFake(() => {
    caller.abort(new Error('out of time'));
    throw new Error('aborted');
  });
  await expect(publisher().publish([event('a')], caller.signal)).rejects.toThrow('out of time');
});

test('under any refusals, each event is accepted once or named as failed', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.integer({ min: 0, max: 5 }), { maxLength: 35 }), async (refusals) => {
      mock.reset();
      const left = new Map(refusals.map((times, i) => [`e${i}`, times]));
      const taken: string[] = [];
      answer((id) => {
        const times = left.get(id) ?? 0;
        if (times === 0) taken.push(id);
        left.set(id, times - 1);
        return times > 0 ? 'InternalFailure' : undefined;
      });
      const failed = await publisher(4).publish(refusals.map((_, i) => event(`e${i}`)));
      expect(failed).toEqual(refusals.flatMap((times, i) => (times >= 4 ? [i] : [])));
      expect([...taken, ...failed.map((i) => `e${i}`)].sort()).toEqual(refusals.map((_, i) => `e${i}`).sort());
    }),
  );
});

test('calls hold at most ten entries and 256 KB, in order, with nothing lost', () => {
  fc.assert(
    fc.property(fc.array(fc.record({ bytes: fc.integer({ min: 1, max: 2 * maxCallBytes }) })), (all) => {
      const made = batches(all);
      expect(made.flat()).toEqual(all);
      for (const batch of made) {
        expect(batch.length).toBeLessThanOrEqual(maxEntries);
        const bytes = batch.reduce((sum, one) => sum + one.bytes, 0);
        expect(batch.length === 1 || bytes <= maxCallBytes).toBe(true);
      }
    }),
  );
});
