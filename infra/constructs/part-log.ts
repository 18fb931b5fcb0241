/** The log group that the functions of a part share. Metrics are embedded in its lines (`functions/runtime/embedded-metrics.ts`). */
import { RemovalPolicy } from 'aws-cdk-lib';
import { LogGroup } from 'aws-cdk-lib/aws-logs';
import type { Construct } from 'constructs';
import type { StageSettings } from '../stages.ts';
import type { Part } from './access.ts';
import type { Names } from './names.ts';

export function partLog(
  scope: Construct,
  part: Part,
  { settings, names }: { readonly settings: StageSettings; readonly names: Names },
): LogGroup {
  return new LogGroup(scope, 'Log', {
    logGroupName: names.logGroup(part),
    retention: settings.logDays,
    removalPolicy: RemovalPolicy.DESTROY,
  });
}
