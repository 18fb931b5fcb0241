/** All stacks of one stage, in the order in which they need each other: data and edge, what functions have in common, alarms (which end a release), functions. */
import { Stage, type StageProps, Tags } from 'aws-cdk-lib';
import type { Code } from 'aws-cdk-lib/aws-lambda';
import type { Construct } from 'constructs';
import type { CloudFunction } from '#functions/cloud-function.ts';
import type { CloudEnvironment } from '#functions/runtime/env.ts';
import { isAsynchronous, type Part, partOf } from './constructs/access.ts';
import type { Runs } from './constructs/broker-function.ts';
import { here } from './constructs/here.ts';
import { type Names, namesOf } from './constructs/names.ts';
import type { Watched } from './rules/alarms.ts';
import { ApiStack } from './stacks/api.ts';
import { ChannelStack } from './stacks/channel.ts';
import { ConsoleStack } from './stacks/console.ts';
import { DataStack } from './stacks/data.ts';
import { EdgeStack } from './stacks/edge.ts';
import { EventsStack } from './stacks/events.ts';
import { FoundationStack } from './stacks/foundation.ts';
import { ObservabilityStack } from './stacks/observability.ts';
import type { StageSettings } from './stages.ts';

export interface BrokerStageProps {
  readonly settings: StageSettings;
  readonly functions: readonly CloudFunction[];
  readonly codeOf: (fn: CloudFunction) => Code;
}

const minutes: Readonly<Record<string, number>> = { minute: 1, hour: 60, day: 1_440 };

/** `rate(5 minutes)` in minutes. */
export function minutesOf(rate: string): number {
  const [, count, unit] = /^rate\((\d+) (minute|hour|day)s?\)$/.exec(rate) ?? [];
  if (count === undefined || unit === undefined) {
    throw new RangeError(`a schedule is written rate(N minutes|hours|days), got ${JSON.stringify(rate)}`);
  }
  return Number(count) * (minutes[unit] ?? 1);
}

const restParts = [
  ['api-peerings', 'its REST API: clusters, peerings and what leads to them'],
  ['api-tenants', 'its REST API: tenants, members, keys, audit'],
  ['api-receivers', 'its REST API: webhooks and event targets'],
] as const;

const watchedIn = (
  functions: readonly CloudFunction[],
  { accountConcurrency, reservedConcurrency }: StageSettings,
  names: Names,
  edge: EdgeStack,
): Watched => ({
  metrics: names.metrics,
  unreserved: accountConcurrency - Object.values(reservedConcurrency).reduce((sum, one) => sum + one, 0),
  table: names.table,
  httpApiId: edge.httpApiId,
  webSocketApiId: edge.webSocketApiId,
  webSocketStage: edge.webSocketStage,
  streamReaders: functions.filter(({ trigger }) => trigger.kind === 'stream').map(({ name }) => names.function(name)),
  schedules: functions.flatMap(({ name, trigger }) =>
    trigger.kind === 'schedule'
      ? [{ edge: name, name: names.function(name), everyMinutes: minutesOf(trigger.rate) }]
      : [],
  ),
  deadLetters: functions.filter(isAsynchronous).map(({ name }) => ({ edge: name, queue: names.deadLetters(name) })),
});

export class BrokerStage extends Stage {
  constructor(scope: Construct, { settings, functions, codeOf }: BrokerStageProps) {
    const { name, account, region } = settings;
    const env: StageProps['env'] = {
      ...(account !== undefined && { account }),
      ...(region !== undefined && { region }),
    };
    super(scope, name, { env });
    Tags.of(this).add('isthmus:stage', name);
    const names = namesOf(settings, here);
    const stack = (part: string, description: string) => ({
      stackName: names.of(part),
      description: `Isthmus broker, ${description}`,
      terminationProtection: settings.keepData,
    });

    const data = new DataStack(this, 'data', settings, stack('data', 'its table'));
    const edge = new EdgeStack(this, 'edge', settings, names, stack('edge', 'its addresses'));
    const foundation = new FoundationStack(this, 'foundation', {
      settings,
      names,
      functions,
      ...stack('foundation', 'what its functions have in common'),
    });
    const environment: CloudEnvironment = {
      TABLE_NAME: names.table,
      BUS_NAME: names.bus,
      BROKER_URL: edge.publicUrl,
      SOCKET_ENDPOINT: edge.channelEndpoint,
      SOCKET_URL: edge.channelUrl,
      BOX_SECRET: names.boxSecret,
      EVENT_PRINCIPAL: names.principal,
      LOG_LEVEL: settings.logLevel,
    };
    const runs: Runs = {
      settings,
      codeOf,
      environment,
      reach: {
        names,
        channel: { apiId: edge.webSocketApiId, stageName: edge.webSocketStage },
        tableStreamArn: data.tableStreamArn,
      },
    };
    const apis = { httpApiId: edge.httpApiId, webSocketApiId: edge.webSocketApiId };
    const within = (part: Part) => functions.filter((fn) => partOf(fn) === part);
    const running = [
      new EventsStack(this, 'events', {
        ...runs,
        functions: within('events'),
        ...stack('events', 'what happens after a change'),
      }),
      ...restParts.map(
        ([part, description]) =>
          new ApiStack(this, part, { ...runs, ...apis, functions: within(part), ...stack(part, description) }),
      ),
      new ChannelStack(this, 'channel', {
        ...runs,
        ...apis,
        functions: within('channel'),
        ...stack('channel', 'what agents talk to'),
      }),
    ];
    const page = new ConsoleStack(this, 'console', {
      settings,
      names,
      httpApiId: edge.httpApiId,
      ...stack('console', 'its web page'),
    });
    page.addStackDependency(edge);
    const observability = new ObservabilityStack(this, 'observability', {
      settings,
      names,
      watched: watchedIn(functions, settings, names, edge),
      ...stack('observability', 'alarms and dashboard'),
    });
    observability.addStackDependency(edge);
    // They know the others by name: CloudFormation does not see that those must be there first.
    for (const each of running)
      for (const first of [data, edge, foundation, observability]) each.addStackDependency(first);
  }
}
