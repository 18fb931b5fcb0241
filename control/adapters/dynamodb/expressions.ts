/** From the port's operations to the parts of a DynamoDB transaction. An expired item that is still there counts as absent. */
import type { TransactWriteItem } from '@aws-sdk/client-dynamodb';
import type { Addition, Op } from '../../ports/store.ts';
import { expectedVersion } from '../../ports/store-conflict.ts';
import { type Attributes, expiryOf, keyOf } from './item.ts';

const absent = 'attribute_not_exists(pk) OR exp <= :now';
const hasVersion = 'ver = :ver AND (attribute_not_exists(exp) OR exp > :now)';
const number = (value: number): { readonly N: string } => ({ N: String(value) });

interface Condition {
  readonly ConditionExpression: string;
  readonly ExpressionAttributeValues: Attributes;
  /** Tells which version was found without another read. */
  readonly ReturnValuesOnConditionCheckFailure: 'ALL_OLD';
}

const condition = (version: number, now: number): Condition => ({
  ConditionExpression: version === 0 ? absent : hasVersion,
  ExpressionAttributeValues: version === 0 ? { ':now': number(now) } : { ':now': number(now), ':ver': number(version) },
  ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
});

/** The number is an attribute of its own: the table adds to it, and no writer has to read it first. */
function additionOf(op: Addition, TableName: string): TransactWriteItem {
  const room = op.by <= 0 || op.atMost === undefined ? undefined : op.atMost - op.by;
  const below = room !== undefined && room < 0 ? 'num <= :room' : 'attribute_not_exists(num) OR num <= :room';
  return {
    Update: {
      TableName,
      Key: keyOf(op),
      UpdateExpression: 'ADD num :by, ver :one',
      ...(room === undefined ? {} : { ConditionExpression: below }),
      ExpressionAttributeValues: {
        ':by': number(op.by),
        ':one': number(1),
        ...(room === undefined ? {} : { ':room': number(room) }),
      },
    },
  };
}

/** `text` is the value of a put or an update. */
export function writeOf(op: Op, text: string | undefined, TableName: string, now: number): TransactWriteItem {
  if (op.op === 'add') return additionOf(op, TableName);
  if (op.op === 'clear') return { Delete: { TableName, Key: keyOf(op) } };
  if (op.op === 'set') {
    const Item = { ...keyOf(op), val: { S: text ?? 'null' }, ver: number(1), ...expiryOf(op.expiresAt) };
    return { Put: { TableName, Item } };
  }
  const guarded = { TableName, ...condition(expectedVersion(op), now) };
  if (op.op === 'check') return { ConditionCheck: { Key: keyOf(op), ...guarded } };
  if (op.op === 'delete') return { Delete: { Key: keyOf(op), ...guarded } };
  const Item: Attributes = {
    ...keyOf(op),
    val: { S: text ?? 'null' },
    ver: number(expectedVersion(op) + 1),
    ...expiryOf(op.expiresAt),
  };
  return { Put: { Item, ...guarded } };
}
