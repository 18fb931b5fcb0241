/** Event targets against moto's STS, EventBridge and SQS: what is put arrives in a tenant's queue and, through a rule of the tenant's, from its bus. */
import { CreateEventBusCommand, PutRuleCommand, PutTargetsCommand } from '@aws-sdk/client-eventbridge';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { systemClock } from '#shared/ports/system-clock.ts';
import { fakeCredentials, fakeRegion } from '#test/aws/dynamodb-local.ts';
import { type Moto, startMoto } from '#test/aws/moto.ts';
import type { EventTargetSender, TargetMessage } from '../../ports/event-target-sender.ts';
import { createAwsTargets } from './aws-targets.ts';

let moto: Moto;
let sender: EventTargetSender;
beforeAll(async () => {
  moto = await startMoto();
  sender = createAwsTargets({
    clock: systemClock,
    principal: 'arn:aws:iam::210987654321:root',
    region: async () => fakeRegion,
    credentials: async () => fakeCredentials,
    endpoint: moto.endpoint,
  });
});
afterAll(() => moto.stop());

const message = (arn: string, id: string): TargetMessage => ({
  tenant: 'acme',
  arn,
  roleArn: 'arn:aws:iam::123456789012:role/isthmus-events-ops',
  externalId: 'isthmus/acme',
  event: { id, type: 'dev.isthmus.peering.requested.v1', subject: 'peering/pe_1', at: systemClock.now() },
  body: JSON.stringify({ specversion: '1.0', id, subject: 'peering/pe_1' }),
});
const taken = { status: 200, text: expect.stringMatching(/^[0-9a-f-]{8,}$/) };

test('a queue holds the CloudEvent, and the answer has its message id', async () => {
  const queue = await moto.queue('events');
  expect(await sender.send(message(queue.arn, 'ev_1'))).toEqual(taken);
  expect(await queue.take()).toEqual([{ specversion: '1.0', id: 'ev_1', subject: 'peering/pe_1' }]);
});

test('a FIFO queue holds an event once, however often it is sent', async () => {
  const queue = await moto.queue('events.fifo');
  for (const id of ['ev_1', 'ev_2', 'ev_1']) expect(await sender.send(message(queue.arn, id))).toEqual(taken);
  const ids = (await queue.take()).map((event) => (event as { readonly id: string }).id);
  expect(ids.sort()).toEqual(['ev_1', 'ev_2']);
});

test('a bus hands the CloudEvent to the rules that its owner made', async () => {
  const client = moto.eventBridge();
  const { EventBusArn = '' } = await client.send(new CreateEventBusCommand({ Name: 'ops' }));
  const queue = await moto.queue('from-the-bus');
  const EventPattern = JSON.stringify({ source: ['isthmus'], 'detail-type': [{ prefix: 'dev.isthmus.peering.' }] });
  await client.send(new PutRuleCommand({ Name: 'peerings', EventBusName: 'ops', EventPattern }));
  const Targets = [{ Id: 'queue', Arn: queue.arn }];
  await client.send(new PutTargetsCommand({ Rule: 'peerings', EventBusName: 'ops', Targets }));
  expect(await sender.send(message(EventBusArn, 'ev_1'))).toEqual(taken);
  expect(await queue.take()).toEqual([
    expect.objectContaining({ source: 'isthmus', detail: { specversion: '1.0', id: 'ev_1', subject: 'peering/pe_1' } }),
  ]);
});

test('a queue that is not there is refused with the code of AWS', async () => {
  const arn = `arn:aws:sqs:${fakeRegion}:123456789012:nobody`;
  expect(await sender.send(message(arn, 'ev_1'))).toEqual({ error: expect.stringContaining('QueueDoesNotExist') });
});
