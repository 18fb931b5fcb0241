/** The publisher against moto's EventBridge: what is published arrives at a rule's target once, as event functions read it. */
import { CreateEventBusCommand, PutRuleCommand, PutTargetsCommand } from '@aws-sdk/client-eventbridge';
import type { EventBridgeEvent } from 'aws-lambda';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { detailOf, outboxEventOf } from '#functions/runtime/bus-event.ts';
import { eventSource, patterns } from '#functions/runtime/bus-patterns.ts';
import { silentLog } from '#shared/ports/log.ts';
import { type Moto, startMoto } from '#test/aws/moto.ts';
import type { NewEvent } from '../../ports/store.ts';
import { createPublisher } from './publisher.ts';

let moto: Moto;
beforeAll(async () => {
  moto = await startMoto();
});
afterAll(() => moto.stop());

async function bus(name: string, rules: Readonly<Record<string, unknown>>) {
  const client = moto.eventBridge();
  await client.send(new CreateEventBusCommand({ Name: name }));
  const queues = new Map<string, Awaited<ReturnType<Moto['queue']>>>();
  for (const [rule, pattern] of Object.entries(rules)) {
    const queue = await moto.queue(`${name}-${rule}`);
    const Rule = `${name}-${rule}`;
    await client.send(new PutRuleCommand({ Name: Rule, EventBusName: name, EventPattern: JSON.stringify(pattern) }));
    await client.send(new PutTargetsCommand({ Rule, EventBusName: name, Targets: [{ Id: rule, Arn: queue.arn }] }));
    queues.set(rule, queue);
  }
  const publisher = createPublisher({
    client,
    busName: name,
    source: eventSource,
    detailOf,
    backoff: async () => undefined,
    log: silentLog,
  });
  const arrived = async (rule: string): Promise<string[]> =>
    ((await queues.get(rule)?.take()) ?? [])
      .map((event) => outboxEventOf(event as EventBridgeEvent<string, unknown>).id)
      .sort();
  return { publisher, arrived, take: (rule: string) => queues.get(rule)?.take() };
}

const event = (id: string, type: string, data: Record<string, unknown> = {}): NewEvent => ({
  id,
  stream: 'acme',
  type,
  subject: 'cluster/rome',
  at: Date.UTC(2026, 10, 21),
  data,
});

test('each event arrives where a rule wants it, with tenant, subject and data', async () => {
  const { publisher, arrived, take } = await bus('chosen', patterns);
  const failed = await publisher.publish([
    event('ev_1', 'cluster.observed', { peerings: ['pe_1'] }),
    event('ev_2', 'cluster.observed', { peerings: ['pe_1'] }),
    event('ev_3', 'cluster.left'),
    event('ev_4', 'api-key.created'),
  ]);
  expect(failed).toEqual([]);
  expect(await arrived('peerings')).toEqual(['ev_1', 'ev_2', 'ev_3']);
  expect(await arrived('webhooks')).toEqual(['ev_3', 'ev_4']);
  expect(await take('clusterLeft')).toEqual([
    expect.objectContaining({
      source: 'isthmus',
      'detail-type': 'cluster.left',
      detail: { id: 'ev_3', tenant: 'acme', subject: 'cluster/rome', at: Date.UTC(2026, 10, 21), data: {} },
    }),
  ]);
});

test('more events than one call takes arrive all, each once', async () => {
  const { publisher, arrived } = await bus('many', { all: { source: [eventSource] } });
  const events = Array.from({ length: 37 }, (_, i) => event(`ev_${String(i).padStart(2, '0')}`, 'peering.changed'));
  expect(await publisher.publish(events)).toEqual([]);
  expect(await arrived('all')).toEqual(events.map(({ id }) => id));
});
