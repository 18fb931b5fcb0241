/** The patterns of the rules, checked by AWS's own matcher: what the coordination needs reaches it, and nothing else starts a function. */
import { marshall } from '@aws-sdk/util-dynamodb';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { closedItem, eventItem, headKey } from '#control/adapters/dynamodb/outbox-item.ts';
import { peeringTrigger } from '#control/events/peering-trigger.ts';
import { eventTypes, isPublic } from '#control/events/types.ts';
import type { NewEvent } from '#control/ports/store.ts';
import {
  authenticationKinds,
  negotiationKinds,
  networkKinds,
  outboxInsertions,
  patterns,
} from '#functions/runtime/bus-patterns.ts';
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

test.each([
  { kinds: ['Secret'], rules: ['authentication'] },
  { kinds: ['Tenant'], rules: ['authentication'] },
  { kinds: ['Identity', 'Namespace'], rules: ['authentication'] },
  { kinds: ['ResourceSlice'], rules: ['negotiation'] },
  { kinds: ['Node', 'VirtualNode'], rules: ['negotiation'] },
  { kinds: ['GatewayServer'], rules: ['network'] },
  { kinds: ['Identity', 'ResourceSlice'], rules: ['authentication', 'negotiation'] },
  { kinds: [], rules: ['applied'] },
  { kinds: undefined, rules: ['applied'] },
  { kinds: ['SomethingNew'], rules: ['applied'] },
])('a report in which $kinds changed starts $rules', async ({ kinds, rules }) => {
  expect(await startedBy(event('cluster.observed', { peerings: ['pe_1'], ...(kinds && { kinds }) }))).toEqual(rules);
});

test('a report starts at least one coordination function, for every change in it', async () => {
  const kind = fc.oneof(
    fc.constantFrom<string>(...authenticationKinds, ...negotiationKinds, ...networkKinds),
    fc.string({ minLength: 1, maxLength: 12 }),
  );
  await fc.assert(
    fc.asyncProperty(fc.uniqueArray(kind, { maxLength: 6 }), async (kinds) => {
      expect(await startedBy(event('cluster.observed', { peerings: ['pe_1'], kinds }))).not.toEqual([]);
    }),
    { numRuns: 200 },
  );
});

test('every type that the coordination subscribes to starts a coordination function, and no other type starts one', async () => {
  const { types = [] } = peeringTrigger({} as never);
  for (const type of Object.keys(eventTypes)) {
    const started = (await startedBy(event(type))).filter((rule) => rule !== 'clusterLeft' && rule !== 'webhooks');
    expect({ type, started: started.length > 0 }).toEqual({ type, started: types.includes(type) });
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
