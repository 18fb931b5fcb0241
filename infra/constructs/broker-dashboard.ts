/** The page to look at when an alarm rings: what comes in, what it does to functions and table, and what got stuck. */
import { Duration } from 'aws-cdk-lib';
import { Dashboard, GraphWidget, type IMetric, MathExpression, Metric, TextWidget } from 'aws-cdk-lib/aws-cloudwatch';
import type { Construct } from 'constructs';
import type { Watched } from '../rules/alarms.ts';
import type { Names } from './names.ts';
import { requestWidgets } from './request-widgets.ts';

const period = Duration.minutes(5);

const metric = (
  namespace: string,
  metricName: string,
  dimensionsMap: Readonly<Record<string, string>>,
  statistic = 'Sum',
  label = metricName,
): Metric => new Metric({ namespace, metricName, dimensionsMap: { ...dimensionsMap }, statistic, label, period });

/** All functions of the stage in one line each, also those that a later release adds. */
const everyFunction = (names: Names, metricName: string, statistic: string): MathExpression =>
  new MathExpression({
    expression: `SEARCH('{AWS/Lambda,FunctionName} FunctionName="${names.function('')}" MetricName="${metricName}"', '${statistic}')`,
    usingMetrics: {},
    label: '',
    period,
  });

const graph = (title: string, left: readonly IMetric[], right: readonly IMetric[] = []): GraphWidget =>
  new GraphWidget({ title, left: [...left], right: [...right], width: 8, height: 6 });

export function brokerDashboard(scope: Construct, names: Names, watched: Watched): Dashboard {
  const http = { ApiId: watched.httpApiId };
  const channel = { ApiId: watched.webSocketApiId, Stage: watched.webSocketStage };
  const table = { TableName: watched.table };
  return new Dashboard(scope, 'Dashboard', {
    dashboardName: names.of('broker'),
    defaultInterval: Duration.hours(12),
    widgets: [
      [
        new TextWidget({
          markdown: `# Isthmus broker, ${names.bus}\nWhat each alarm means is in its description; what to do about the deployment is in docs/deploy.md.`,
          width: 24,
          height: 2,
        }),
      ],
      [
        graph(
          'Requests and errors',
          [metric('AWS/ApiGateway', 'Count', http)],
          [metric('AWS/ApiGateway', '4xx', http), metric('AWS/ApiGateway', '5xx', http)],
        ),
        graph('Latency, ms', [
          metric('AWS/ApiGateway', 'Latency', http, 'p50', 'p50'),
          metric('AWS/ApiGateway', 'Latency', http, 'p99', 'p99 (long polls included)'),
        ]),
        graph(
          'NotifySockets',
          [metric('AWS/ApiGateway', 'ConnectCount', channel), metric('AWS/ApiGateway', 'MessageCount', channel)],
          [metric('AWS/ApiGateway', 'ExecutionError', channel), metric('AWS/ApiGateway', 'ClientError', channel)],
        ),
      ],
      requestWidgets(watched.table),
      [
        graph('Errors of functions', [everyFunction(names, 'Errors', 'Sum')]),
        graph('Duration of functions, p95 ms', [everyFunction(names, 'Duration', 'p95')]),
        graph(
          'Events: age in the stream, ms',
          watched.streamReaders.map((FunctionName) =>
            metric('AWS/Lambda', 'IteratorAge', { FunctionName }, 'Maximum', FunctionName),
          ),
        ),
      ],
      [
        graph('Table: units consumed', [
          metric('AWS/DynamoDB', 'ConsumedReadCapacityUnits', table),
          metric('AWS/DynamoDB', 'ConsumedWriteCapacityUnits', table),
        ]),
        graph('Table: throttles', [
          metric('AWS/DynamoDB', 'ReadThrottleEvents', table),
          metric('AWS/DynamoDB', 'WriteThrottleEvents', table),
        ]),
        graph(
          'Dead letters',
          watched.deadLetters.map(({ edge, queue }) =>
            metric('AWS/SQS', 'ApproximateNumberOfMessagesVisible', { QueueName: queue }, 'Maximum', edge),
          ),
        ),
      ],
    ],
  });
}
