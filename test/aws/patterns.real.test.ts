/** The patterns of the rules, checked by AWS's own matcher: what the coordination needs reaches it, and nothing else starts a function. */
import { marshall } from '@aws-sdk/util-dynamodb';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { closedItem, eventItem, headKey } from '#control/adapters/dynamodb/outbox-item.ts';
import { peeringTrigger } from '#control/events/peering-trigger.ts';
import { eventTypes, isPublic } from '#control/events/types.ts';
import type { NewEvent } from '#control/ports/store.ts';
import { outboxInsertions, patterns } from '#functions/runtime/bus-patterns.ts';
import { bridgeEvent } from './bridge-event.ts';
import { type EventRuler, startEventRuler } from './event-ruler.ts';

let ruler: EventRuler;
beforeAll(async () => {
  ruler = await startEventRuler();
});
afterAll(() => ruler.stop());

const event = (type: string, data: Record<string, unknown> = {}): NewEvent => ({
  id: 'ev_1',
  stream: 'acme',
  type,
  subject: 'cluster/rome',
  at: 1_780_000_000_000,
  data,
});

async function startedBy(of: NewEvent): Promise<string[]> {
  const names = Object.keys(patterns) as (keyof typeof patterns)[];
  const started = await Promise.all(names.map((name) => ruler.matches(bridgeEvent(of), patterns[name])));
  return names.filter((_, i) => started[i]);
}

test('every type that the coordination subscribes to starts the function that looks at peerings, and no other type starts it', async () => {
  const { types = [] } = peeringTrigger({} as never);
  for (const type of Object.keys(eventTypes)) {
    const started = (await startedBy(event(type))).includes('peerings');
    expect({ type, started }).toEqual({ type, started: (types as readonly string[]).includes(type) });
  }
});

test('only a cluster that left makes its connections close', async () => {
  for (const type of Object.keys(eventTypes)) {
    expect((await startedBy(event(type))).includes('clusterLeft')).toBe(type === 'cluster.left');
  }
});

test('what tenants may be told starts the deliveries, and a pattern is as short as a rule may be', async () => {
  for (const type of Object.keys(eventTypes)) {
    const wanted = isPublic(type) || type === 'webhook.due';
    expect([type, (await startedBy(event(type))).includes('webhooks')]).toEqual([type, wanted]);
  }
  for (const pattern of Object.values(patterns)) expect(JSON.stringify(pattern).length).toBeLessThanOrEqual(2_048);
});

test("another program's events start nothing", async () => {
  const foreign = { ...bridgeEvent(event('peering.requested')), source: 'foreign.source' };
  for (const pattern of Object.values(patterns)) expect(await ruler.matches(foreign, pattern)).toBe(false);
});

const position = { n: 1, takenAt: 1 };
test.each([
  { what: 'a new event', eventName: 'INSERT', image: eventItem(event('peering.requested'), position, 1), passes: true },
  { what: 'an event that is dropped', eventName: 'REMOVE', image: undefined, passes: false },
  { what: 'a place that was closed', eventName: 'INSERT', image: closedItem('acme', position, 1), passes: false },
  { what: 'the head of a stream', eventName: 'MODIFY', image: { ...headKey('acme'), n: { N: '1' } }, passes: false },
  {
    what: 'an item',
    eventName: 'INSERT',
    image: marshall({ pk: 't/acme', sk: 'tenant', val: '{"kind":"event"}', ver: 1 }),
    passes: false,
  },
])('$what passes the filter of the stream: $passes', async ({ eventName, image, passes }) => {
  const record = { eventName, dynamodb: { ...(image && { NewImage: image }) } };
  expect(await ruler.matches(record, outboxInsertions)).toBe(passes);
});
