/** Where what could not be delivered waits to be looked at: one queue for each asynchronous edge, so that the alarm names the edge. */
import { Duration, RemovalPolicy, Validations } from 'aws-cdk-lib';
import { Queue, QueueEncryption } from 'aws-cdk-lib/aws-sqs';
import type { Construct } from 'constructs';
import { excuses } from '../rules/excuses.ts';
import type { Names } from './names.ts';

export function deadLetters(scope: Construct, names: Names, edge: string): Queue {
  const queue = new Queue(scope, 'DeadLetters', {
    queueName: names.deadLetters(edge),
    retentionPeriod: Duration.days(14),
    encryption: QueueEncryption.SQS_MANAGED,
    enforceSSL: true,
    removalPolicy: RemovalPolicy.DESTROY,
  });
  Validations.of(queue).acknowledge(excuses.deadEnd);
  return queue;
}
