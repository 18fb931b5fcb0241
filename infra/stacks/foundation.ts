/** What the functions of a stage have in common and no release replaces: the log groups of their parts, and the application that their releases belong to. */
import { RemovalPolicy, Stack, type StackProps } from 'aws-cdk-lib';
import { LambdaApplication } from 'aws-cdk-lib/aws-codedeploy';
import { PolicyDocument, PolicyStatement, Role, ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import { LogGroup } from 'aws-cdk-lib/aws-logs';
import type { Construct } from 'constructs';
import type { CloudFunction } from '#functions/cloud-function.ts';
import { logParts } from '../constructs/access.ts';
import type { Names } from '../constructs/names.ts';
import { releaseAlarms } from '../constructs/release-alarms.ts';
import type { StageSettings } from '../stages.ts';

export interface FoundationProps extends StackProps {
  readonly settings: StageSettings;
  readonly names: Names;
  readonly functions: readonly CloudFunction[];
}

export class FoundationStack extends Stack {
  constructor(scope: Construct, id: string, { settings, names, functions, ...props }: FoundationProps) {
    super(scope, id, props);
    for (const part of logParts) {
      // Metrics are embedded in the lines (`functions/runtime/embedded-metrics.ts`).
      new LogGroup(this, `Log-${part}`, {
        logGroupName: names.logGroup(part),
        retention: settings.logDays,
        removalPolicy: RemovalPolicy.DESTROY,
      });
    }
    if (settings.canaryMinutes === undefined) return;
    new LambdaApplication(this, 'Releases', { applicationName: names.releases });
    new Role(this, 'ReleaseRole', {
      roleName: names.releaseRole,
      assumedBy: new ServicePrincipal('codedeploy.amazonaws.com'),
      inlinePolicies: {
        own: new PolicyDocument({
          minimize: false,
          statements: [
            new PolicyStatement({
              sid: 'ShiftTraffic',
              actions: ['lambda:GetAlias', 'lambda:UpdateAlias'],
              resources: functions.map(({ name }) => names.functionArn(name)),
            }),
            new PolicyStatement({
              sid: 'ReadAlarms',
              actions: ['cloudwatch:DescribeAlarms'],
              resources: [...new Set(functions.flatMap(releaseAlarms))].map(names.alarmArn),
            }),
          ],
        }),
      },
    });
  }
}
