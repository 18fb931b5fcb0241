/** Everything asynchronous: the outbox from the table's stream to the bus, rules, schedules. Each edge has its dead letters. */
import { RemovalPolicy, Stack, type StackProps } from 'aws-cdk-lib';
import { CfnArchive, EventBus } from 'aws-cdk-lib/aws-events';
import { LogGroup } from 'aws-cdk-lib/aws-logs';
import { CfnScheduleGroup } from 'aws-cdk-lib/aws-scheduler';
import type { Construct } from 'constructs';
import type { CloudFunction } from '#functions/cloud-function.ts';
import { scheduled, startedByEvents, startedByStream } from '../constructs/asynchronous-edge.ts';
import { BrokerFunction, type Runs } from '../constructs/broker-function.ts';

export interface EventsProps extends StackProps, Runs {
  readonly functions: readonly CloudFunction[];
}

export class EventsStack extends Stack {
  constructor(
    scope: Construct,
    id: string,
    { functions, settings, reach, environment, codeOf, ...props }: EventsProps,
  ) {
    super(scope, id, props);
    const { names } = reach;
    const bus = new EventBus(this, 'Bus', {
      eventBusName: names.bus,
      description: `What happens at the Isthmus broker, stage ${settings.name}`,
    });
    const archive = new CfnArchive(this, 'Archive', {
      archiveName: names.bus,
      sourceArn: bus.eventBusArn,
      retentionDays: settings.archiveDays,
      description: 'For replay, as docs/deploy.md describes',
    });
    archive.applyRemovalPolicy(settings.keepData ? RemovalPolicy.RETAIN : RemovalPolicy.DESTROY);
    const group = new CfnScheduleGroup(this, 'Schedules', { name: names.of('schedules') });

    const logGroup = LogGroup.fromLogGroupName(this, 'Log', names.logGroup('events'));
    for (const fn of functions) {
      const { trigger } = fn;
      const broker = new BrokerFunction(this, fn, { settings, reach, environment, codeOf, logGroup });
      switch (trigger.kind) {
        case 'stream':
          startedByStream(broker, { streamArn: reach.tableStreamArn, filter: trigger.filter });
          break;
        case 'event':
          startedByEvents(broker, { bus, ruleName: names.of(fn.name), pattern: trigger.pattern });
          break;
        case 'schedule':
          scheduled(broker, { group, scheduleName: fn.name, rate: trigger.rate, names });
          break;
      }
    }
  }
}
