import { describe, expect, test } from 'vitest';
import { parseRoleArn, parseTargetArn } from './event-target-arn.ts';

describe('an ARN of an event target', () => {
  test.each([
    {
      arn: 'arn:aws:events:eu-central-1:123456789012:event-bus/default',
      is: { type: 'eventbridge', partition: 'aws', region: 'eu-central-1', account: '123456789012', name: 'default' },
    },
    {
      arn: 'arn:aws-us-gov:sqs:us-gov-west-1:123456789012:orders',
      is: { type: 'sqs', partition: 'aws-us-gov', region: 'us-gov-west-1', account: '123456789012', name: 'orders' },
    },
    {
      arn: 'arn:aws:sqs:us-east-1:123456789012:orders.fifo',
      is: { type: 'sqs', partition: 'aws', region: 'us-east-1', account: '123456789012', name: 'orders.fifo' },
    },
  ])('$arn names its parts', ({ arn, is }) => {
    expect(parseTargetArn(arn)).toEqual(is);
  });

  test.each([
    'arn:aws:events:eu-central-1:123456789012:event-bus/aws.partner/shop/1',
    'arn:aws:events:eu-central-1:123456789012:rule/default',
    'arn:aws:events:evil.example/:123456789012:event-bus/default',
    'arn:aws:events::123456789012:event-bus/default',
    'arn:aws:events:eu-central-1:12345:event-bus/default',
    'arn:aws:sqs:eu-central-1:123456789012:*',
    'arn:aws:sqs:eu-central-1:123456789012:a/b',
    'arn:aws:lambda:eu-central-1:123456789012:function:x',
    'arn:aws:sqs:eu-central-1:123456789012:orders\n',
    '',
  ])('%j is none', (arn) => {
    expect(parseTargetArn(arn)).toBeUndefined();
  });
});

describe('a role', () => {
  test('may be one whose name begins as the rights of the broker say', () => {
    expect(parseRoleArn('arn:aws:iam::123456789012:role/isthmus-events-ops')).toEqual({
      partition: 'aws',
      account: '123456789012',
    });
  });

  test.each([
    'arn:aws:iam::123456789012:role/admin',
    'arn:aws:iam::123456789012:role/team/isthmus-events-ops',
    'arn:aws:iam::123456789012:role/isthmus-events-',
    'arn:aws:iam::123456789012:role/isthmus-events-*',
    'arn:aws:iam::123456789012:user/isthmus-events-ops',
  ])('%j may not', (arn) => {
    expect(parseRoleArn(arn)).toBeUndefined();
  });
});
