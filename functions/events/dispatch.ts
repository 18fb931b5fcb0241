/** Stream of the table: what was committed to the outbox goes to the bus, and portals that listen are told. What the bus does not take is reported, and comes again. */
import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import type { Context, DynamoDBBatchItemFailure, DynamoDBBatchResponse, DynamoDBStreamEvent } from 'aws-lambda';
import { eventOfImage } from '#control/adapters/dynamodb/outbox-item.ts';
import { isPublic } from '#control/events/types.ts';
import { cloudCompositionOf } from '#functions/runtime/cloud-composition.ts';
import { deadlineSignal } from '#functions/runtime/deadline.ts';

export const handler = async ({ Records }: DynamoDBStreamEvent, context: Context): Promise<DynamoDBBatchResponse> => {
  const { publisher, bell, log } = cloudCompositionOf(context);
  const batchItemFailures: DynamoDBBatchItemFailure[] = [];
  const found = Records.flatMap(({ dynamodb }) => {
    const itemIdentifier = dynamodb?.SequenceNumber ?? '';
    try {
      const event = eventOfImage(dynamodb?.NewImage as Record<string, AttributeValue> | undefined);
      return event === undefined ? [] : [{ event, itemIdentifier }];
    } catch (error) {
      // A retry cannot succeed; the event must reach the dead letters, which raise an alarm.
      log.error('a record of the outbox is unreadable', error, { sequenceNumber: itemIdentifier });
      batchItemFailures.push({ itemIdentifier });
      return [];
    }
  });
  const signal = deadlineSignal(context);
  const events = found.map(({ event }) => event);
  const news = new Set(events.filter(({ type }) => isPublic(type)).map(({ stream }) => stream));
  const [failed] = await Promise.all([
    publisher.publish(events, signal),
    news.size === 0 ? undefined : bell.tell([...news], signal),
  ]);
  for (const index of failed) batchItemFailures.push({ itemIdentifier: found[index]?.itemIdentifier ?? '' });
  return { batchItemFailures };
};
