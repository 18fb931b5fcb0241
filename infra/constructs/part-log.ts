/** The log group of a part, and what its access log lines are counted as: how long requests take, without long polls, whose duration is their caller's choice. */
import { RemovalPolicy } from 'aws-cdk-lib';
import { FilterPattern, LogGroup, MetricFilter } from 'aws-cdk-lib/aws-logs';
import type { Construct } from 'constructs';
import { requestMessage, requestMetric } from '../rules/alarms.ts';
import type { StageSettings } from '../stages.ts';
import type { Part } from './access.ts';
import type { Names } from './names.ts';

export function partLog(
  scope: Construct,
  part: Part,
  { settings, names }: { readonly settings: StageSettings; readonly names: Names },
): LogGroup {
  const logGroup = new LogGroup(scope, 'Log', {
    logGroupName: names.logGroup(part),
    retention: settings.logDays,
    removalPolicy: RemovalPolicy.DESTROY,
  });
  if (part === 'events') return logGroup;
  new MetricFilter(scope, 'RequestMs', {
    logGroup,
    filterPattern: FilterPattern.literal(`{ ($.msg = "${requestMessage}") && ($.waited NOT EXISTS) }`),
    metricNamespace: names.metrics,
    metricName: requestMetric,
    metricValue: '$.ms',
  });
  return logGroup;
}
