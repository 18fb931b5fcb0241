/** Alarms, as data. An alarm costs 0.10 USD a month: each has to be worth it, and says what to do. */
import { metricNamespace, requestMetric } from '#shared/metrics/embedded.ts';

export interface Alarm {
  readonly name: string;
  readonly namespace: string;
  readonly metric: string;
  readonly dimensions: Readonly<Record<string, string>>;
  readonly statistic: 'Sum' | 'Maximum' | 'p99';
  readonly periodMinutes: number;
  /** How many periods in a row. */
  readonly periods: number;
  readonly compare: 'at least' | 'less than';
  readonly threshold: number;
  /** What silence means; nearly always that nothing happened. */
  readonly silence: 'fine' | 'alarm';
  readonly because: string;
}

/** The section of docs/operate.md that says what to do. */
export const sectionOf = (name: string): string => /-(dead-letters|silent)$/.exec(name)?.[1] ?? name;

/** Counted from the access log of the HTTP API. */
export const throttledMetric = 'ThrottledRequests';

/** Names of what is watched. */
export interface Watched {
  /** Namespace of the metrics that are counted from logs. */
  readonly metrics: string;
  /** Concurrent executions of the account that are set aside for no function. */
  readonly unreserved: number;
  readonly table: string;
  readonly httpApiId: string;
  readonly webSocketApiId: string;
  readonly webSocketStage: string;
  /** Physical names of functions. */
  readonly streamReaders: readonly string[];
  readonly schedules: readonly { readonly edge: string; readonly name: string; readonly everyMinutes: number }[];
  /** Edge and physical name of its queue. */
  readonly deadLetters: readonly { readonly edge: string; readonly queue: string }[];
}

const tableThrottles = (table: string, kind: 'Read' | 'Write', because: string): Alarm => ({
  name: `table-${kind === 'Read' ? 'read' : 'write'}-throttles`,
  namespace: 'AWS/DynamoDB',
  metric: `${kind}ThrottleEvents`,
  dimensions: { TableName: table },
  statistic: 'Sum',
  periodMinutes: 5,
  periods: 2,
  compare: 'at least',
  threshold: 10,
  silence: 'fine',
  because,
});

export const alarmsFor = (watched: Watched): readonly Alarm[] => [
  ...watched.deadLetters.map(
    ({ edge, queue }): Alarm => ({
      name: `${edge}-dead-letters`,
      namespace: 'AWS/SQS',
      metric: 'ApproximateNumberOfMessagesVisible',
      dimensions: { QueueName: queue },
      statistic: 'Maximum',
      periodMinutes: 5,
      periods: 1,
      compare: 'at least',
      threshold: 1,
      silence: 'fine',
      because: `${edge} gave up on something: read the message and the function's log, then delete the message; the sweep has repaired the state, or a condition says what is missing`,
    }),
  ),
  ...watched.streamReaders.map(
    (name): Alarm => ({
      name: 'stream-late',
      namespace: 'AWS/Lambda',
      metric: 'IteratorAge',
      dimensions: { FunctionName: name },
      statistic: 'Maximum',
      periodMinutes: 5,
      periods: 2,
      compare: 'at least',
      threshold: 60_000,
      silence: 'fine',
      because:
        'events leave the table more than a minute late: peerings advance by the sweep only; look at the log of the function and at the throttles of the bus',
    }),
  ),
  ...watched.schedules.map(
    ({ edge, name, everyMinutes }): Alarm => ({
      name: `${edge}-silent`,
      namespace: 'AWS/Lambda',
      metric: 'Invocations',
      dimensions: { FunctionName: name },
      statistic: 'Sum',
      periodMinutes: Math.max(15, everyMinutes * 3),
      periods: 1,
      compare: 'less than',
      threshold: 1,
      silence: 'alarm',
      because: 'the schedule does not run: lost events stay unrepaired; look at the schedule and at its role',
    }),
  ),
  {
    name: 'api-errors',
    namespace: 'AWS/ApiGateway',
    metric: '5xx',
    dimensions: { ApiId: watched.httpApiId },
    statistic: 'Sum',
    periodMinutes: 5,
    periods: 1,
    compare: 'at least',
    threshold: 5,
    silence: 'fine',
    because:
      'requests fail through no fault of their senders: find route, tenant and request id in the request log, and the failure under that id',
  },
  {
    name: 'api-slow',
    namespace: metricNamespace,
    metric: requestMetric.duration,
    dimensions: { Broker: watched.table },
    statistic: 'p99',
    periodMinutes: 5,
    periods: 3,
    compare: 'at least',
    threshold: 2_000,
    silence: 'fine',
    because:
      'one request in a hundred takes two seconds and more, long polls left out: find the slow routes and their tenants in the request log',
  },
  {
    name: 'api-throttled',
    namespace: watched.metrics,
    metric: throttledMetric,
    dimensions: {},
    statistic: 'Sum',
    periodMinutes: 5,
    periods: 2,
    compare: 'at least',
    threshold: 50,
    silence: 'fine',
    because:
      'the stage takes no more requests than its throttle lets in, and refuses those of every tenant alike: find the address or tenant that sends most',
  },
  {
    name: 'channel-errors',
    namespace: 'AWS/ApiGateway',
    metric: 'ExecutionError',
    dimensions: { ApiId: watched.webSocketApiId, Stage: watched.webSocketStage },
    statistic: 'Sum',
    periodMinutes: 5,
    periods: 1,
    compare: 'at least',
    threshold: 5,
    silence: 'fine',
    because:
      'agents cannot open or use their doorbell and fall back to polling: look at the logs of the channel functions',
  },
  tableThrottles(
    watched.table,
    'Write',
    'one partition takes more than 1,000 writes a second or the table grows faster than on-demand doubles: find the tenant in the request log',
  ),
  tableThrottles(
    watched.table,
    'Read',
    'one partition is asked for more than 3,000 read units a second: find the tenant that sends most in the request log',
  ),
  {
    name: 'concurrency-headroom',
    namespace: 'AWS/Lambda',
    metric: 'UnreservedConcurrentExecutions',
    dimensions: {},
    statistic: 'Maximum',
    periodMinutes: 5,
    periods: 2,
    compare: 'at least',
    threshold: Math.floor(watched.unreserved * 0.8),
    silence: 'fine',
    because:
      'four fifths of the concurrency that is set aside for no function are in use, by this stage or a neighbour: ask AWS for more before functions are throttled',
  },
  {
    name: 'functions-throttled',
    namespace: 'AWS/Lambda',
    metric: 'Throttles',
    dimensions: {},
    statistic: 'Sum',
    periodMinutes: 5,
    periods: 2,
    compare: 'at least',
    threshold: 10,
    silence: 'fine',
    because:
      'the concurrency of the account and Region is used up, by this stage or a neighbour: ask for more, or set some aside in infra/stages.ts',
  },
];
