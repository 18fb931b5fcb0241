/** How a new version of a function comes into use: by a tenth of its calls first, and back by itself when an alarm of its part rings. */
import { Alarm } from 'aws-cdk-lib/aws-cloudwatch';
import {
  type ILambdaDeploymentConfig,
  LambdaApplication,
  LambdaDeploymentConfig,
  LambdaDeploymentGroup,
} from 'aws-cdk-lib/aws-codedeploy';
import { Role } from 'aws-cdk-lib/aws-iam';
import type { Alias } from 'aws-cdk-lib/aws-lambda';
import type { Construct } from 'constructs';
import type { CloudFunction } from '#functions/cloud-function.ts';
import type { StageSettings } from '../stages.ts';
import type { Names } from './names.ts';
import { releaseAlarms } from './release-alarms.ts';

const configs: Readonly<Record<NonNullable<StageSettings['canaryMinutes']>, ILambdaDeploymentConfig>> = {
  5: LambdaDeploymentConfig.CANARY_10PERCENT_5MINUTES,
  10: LambdaDeploymentConfig.CANARY_10PERCENT_10MINUTES,
  15: LambdaDeploymentConfig.CANARY_10PERCENT_15MINUTES,
  30: LambdaDeploymentConfig.CANARY_10PERCENT_30MINUTES,
};

/** With `-c release=at-once` no alarm is asked: the release that mends what rings has to get through. */
const isAtOnce = ({ node }: Construct): boolean => node.tryGetContext('release') === 'at-once';

export function canary(
  scope: Construct,
  fn: CloudFunction,
  alias: Alias,
  { settings, names }: { readonly settings: StageSettings; readonly names: Names },
): void {
  const { canaryMinutes } = settings;
  if (canaryMinutes === undefined) return;
  const atOnce = isAtOnce(scope);
  new LambdaDeploymentGroup(scope, 'Release', {
    application: LambdaApplication.fromLambdaApplicationName(scope, 'Releases', names.releases),
    deploymentGroupName: names.function(fn.name),
    alias,
    role: Role.fromRoleArn(scope, 'ReleaseRole', names.releaseRoleArn, { mutable: false }),
    deploymentConfig: atOnce ? LambdaDeploymentConfig.ALL_AT_ONCE : configs[canaryMinutes],
    alarms: atOnce
      ? []
      : releaseAlarms(fn).map((name) => Alarm.fromAlarmArn(scope, `Alarm-${name}`, names.alarmArn(name))),
    autoRollback: { failedDeployment: true, stoppedDeployment: true, deploymentInAlarm: !atOnce },
  });
}
