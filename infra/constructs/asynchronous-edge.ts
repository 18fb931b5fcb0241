/**
 * Trigger of an asynchronous function. Each edge retries, is bounded in time, and ends in the function's dead letters. Bounds are
 * shorter than a day on purpose: events are hints, and the sweep has looked again long before.
 */
import { Aws, Duration } from 'aws-cdk-lib';
import { CfnRule, type EventBus } from 'aws-cdk-lib/aws-events';
import { Effect, PolicyDocument, PolicyStatement, Role, ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import { EventSourceMapping, StartingPosition } from 'aws-cdk-lib/aws-lambda';
import { CfnSchedule, type CfnScheduleGroup } from 'aws-cdk-lib/aws-scheduler';
import type { Queue } from 'aws-cdk-lib/aws-sqs';
import type { BrokerFunction } from './broker-function.ts';
import type { Names } from './names.ts';

const queueOf = ({ node, deadLetters }: BrokerFunction): Queue => {
  if (deadLetters === undefined) throw new Error(`${node.id} answers its callers and has no dead letters`);
  return deadLetters;
};

/** A batch that fails is halved until the poisonous record is alone, and that one is left as a dead letter: it never stops the others. */
export function startedByStream(
  fn: BrokerFunction,
  { streamArn, filter }: { readonly streamArn: string; readonly filter: Readonly<Record<string, unknown>> },
): void {
  const queue = queueOf(fn);
  new EventSourceMapping(fn, 'Stream', {
    target: fn.live,
    eventSourceArn: streamArn,
    startingPosition: StartingPosition.TRIM_HORIZON,
    batchSize: 100,
    bisectBatchOnError: true,
    reportBatchItemFailures: true,
    retryAttempts: 10,
    maxRecordAge: Duration.hours(6),
    filters: [{ pattern: JSON.stringify(filter) }],
    onFailure: { bind: () => ({ destination: queue.queueArn }) },
  });
}

export function startedByEvents(
  fn: BrokerFunction,
  {
    bus,
    ruleName,
    pattern,
  }: { readonly bus: EventBus; readonly ruleName: string; readonly pattern: Readonly<Record<string, unknown>> },
): void {
  const queue = queueOf(fn);
  const rule = new CfnRule(fn, 'Rule', {
    name: ruleName,
    eventBusName: bus.eventBusName,
    eventPattern: pattern,
    targets: [
      {
        id: 'function',
        arn: fn.live.functionArn,
        deadLetterConfig: { arn: queue.queueArn },
        retryPolicy: { maximumEventAgeInSeconds: Duration.hours(1).toSeconds(), maximumRetryAttempts: 60 },
      },
    ],
  });
  const bridge = new ServicePrincipal('events.amazonaws.com');
  fn.live.addPermission('StartedByEvents', { principal: bridge, sourceArn: rule.attrArn });
  queue.addToResourcePolicy(
    new PolicyStatement({
      sid: 'UndeliverableEvents',
      effect: Effect.ALLOW,
      principals: [bridge],
      actions: ['sqs:SendMessage'],
      resources: [queue.queueArn],
      conditions: { ArnEquals: { 'aws:SourceArn': rule.attrArn } },
    }),
  );
}

export function scheduled(
  fn: BrokerFunction,
  {
    group,
    scheduleName,
    rate,
    names,
  }: {
    readonly group: CfnScheduleGroup;
    readonly scheduleName: string;
    readonly rate: string;
    readonly names: Names;
  },
): void {
  const queue = queueOf(fn);
  const role = new Role(fn, 'ScheduleRole', {
    assumedBy: new ServicePrincipal('scheduler.amazonaws.com', {
      conditions: { StringEquals: { 'aws:SourceAccount': Aws.ACCOUNT_ID } },
    }),
    inlinePolicies: {
      own: new PolicyDocument({
        minimize: false,
        statements: [
          new PolicyStatement({
            sid: 'Start',
            actions: ['lambda:InvokeFunction'],
            resources: [names.liveArn(fn.node.id)],
          }),
          new PolicyStatement({
            sid: 'SendDeadLetters',
            actions: ['sqs:SendMessage'],
            resources: [names.deadLettersArn(fn.node.id)],
          }),
        ],
      }),
    },
  });
  new CfnSchedule(fn, 'Schedule', {
    name: scheduleName,
    groupName: group.ref,
    scheduleExpression: rate,
    flexibleTimeWindow: { mode: 'OFF' },
    target: {
      arn: fn.live.functionArn,
      roleArn: role.roleArn,
      deadLetterConfig: { arn: queue.queueArn },
      // The next run comes anyway.
      retryPolicy: { maximumEventAgeInSeconds: 60, maximumRetryAttempts: 2 },
    },
  });
}
