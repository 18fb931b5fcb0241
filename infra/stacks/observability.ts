/** Alarms with their recipients, and the dashboard to look at then. It knows the others by name only, so it never holds them up. */
import { Duration, Stack, type StackProps, Validations } from 'aws-cdk-lib';
import { Alarm, ComparisonOperator, Metric, TreatMissingData } from 'aws-cdk-lib/aws-cloudwatch';
import { SnsAction } from 'aws-cdk-lib/aws-cloudwatch-actions';
import { PolicyStatement, ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import { Topic } from 'aws-cdk-lib/aws-sns';
import { EmailSubscription } from 'aws-cdk-lib/aws-sns-subscriptions';
import type { Construct } from 'constructs';
import { brokerDashboard } from '../constructs/broker-dashboard.ts';
import type { Names } from '../constructs/names.ts';
import { alarmsFor, type Watched } from '../rules/alarms.ts';
import { excuses } from '../rules/excuses.ts';
import type { StageSettings } from '../stages.ts';

export interface ObservabilityProps extends StackProps {
  readonly settings: StageSettings;
  readonly names: Names;
  readonly watched: Watched;
}

export class ObservabilityStack extends Stack {
  constructor(scope: Construct, id: string, { settings, names, watched, ...props }: ObservabilityProps) {
    super(scope, id, props);
    const topic = this.alarmTopic(names);
    if (settings.alarmEmail !== undefined) topic.addSubscription(new EmailSubscription(settings.alarmEmail));
    const tell = new SnsAction(topic);
    for (const rule of alarmsFor(watched)) {
      const alarm = new Alarm(this, rule.name, {
        alarmName: names.of(rule.name),
        alarmDescription: rule.because,
        metric: new Metric({
          namespace: rule.namespace,
          metricName: rule.metric,
          dimensionsMap: { ...rule.dimensions },
          statistic: rule.statistic,
          period: Duration.minutes(rule.periodMinutes),
        }),
        threshold: rule.threshold,
        evaluationPeriods: rule.periods,
        comparisonOperator:
          rule.compare === 'at least'
            ? ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD
            : ComparisonOperator.LESS_THAN_THRESHOLD,
        treatMissingData: rule.silence === 'fine' ? TreatMissingData.NOT_BREACHING : TreatMissingData.BREACHING,
      });
      alarm.addAlarmAction(tell);
      alarm.addOkAction(tell);
    }
    if (settings.dashboard) brokerDashboard(this, names, watched);
  }

  private alarmTopic(names: Names): Topic {
    const topic = new Topic(this, 'Alarms', { topicName: names.of('alarms'), enforceSSL: true });
    topic.addToResourcePolicy(
      new PolicyStatement({
        sid: 'AlarmsOfThisAccount',
        principals: [new ServicePrincipal('cloudwatch.amazonaws.com')],
        actions: ['sns:Publish'],
        resources: [topic.topicArn],
        conditions: { StringEquals: { 'aws:SourceAccount': this.account } },
      }),
    );
    Validations.of(topic).acknowledge(excuses.alarmsInClear);
    return topic;
  }
}
