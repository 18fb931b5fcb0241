/** Alarms with their recipients, and the dashboard to look at then. It knows the others by name only, so it never holds them up. */
import { Annotations, Duration, Stack, type StackProps, Validations } from 'aws-cdk-lib';
import { CfnBudget } from 'aws-cdk-lib/aws-budgets';
import { Alarm, ComparisonOperator, Metric, TreatMissingData } from 'aws-cdk-lib/aws-cloudwatch';
import { SnsAction } from 'aws-cdk-lib/aws-cloudwatch-actions';
import { PolicyStatement, ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import { Topic } from 'aws-cdk-lib/aws-sns';
import { EmailSubscription, UrlSubscription } from 'aws-cdk-lib/aws-sns-subscriptions';
import type { Construct } from 'constructs';
import { brokerDashboard } from '../constructs/broker-dashboard.ts';
import type { Names } from '../constructs/names.ts';
import { alarmsFor, sectionOf, type Watched } from '../rules/alarms.ts';
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
    for (const subscriber of settings.alarmSubscribers) {
      topic.addSubscription(
        subscriber.startsWith('https://') ? new UrlSubscription(subscriber) : new EmailSubscription(subscriber),
      );
    }
    if (settings.alarmSubscribers.length === 0) {
      Annotations.of(topic).addWarningV2(
        'isthmus:alarmSubscribers',
        `alarms of stage ${settings.name} reach no reader: name an address in alarmSubscribers (infra/stages.ts)`,
      );
    }
    this.budget(topic, settings, names);
    const tell = new SnsAction(topic);
    for (const rule of alarmsFor(watched)) {
      const alarm = new Alarm(this, rule.name, {
        alarmName: names.of(rule.name),
        alarmDescription: `${rule.because} (docs/operate.md#${sectionOf(rule.name)})`,
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

  /** Of the whole account: a filter by tag counts nothing until the tag is activated for billing, and nothing would say so. */
  private budget(topic: Topic, { monthlyBudgetUsd }: StageSettings, names: Names): void {
    const subscribers = [{ subscriptionType: 'SNS', address: topic.topicArn }];
    const told = (notificationType: 'ACTUAL' | 'FORECASTED', threshold: number) => ({
      notification: {
        notificationType,
        threshold,
        thresholdType: 'PERCENTAGE',
        comparisonOperator: 'GREATER_THAN',
      },
      subscribers,
    });
    const budget = new CfnBudget(this, 'Budget', {
      budget: {
        budgetName: names.of('budget'),
        budgetType: 'COST',
        timeUnit: 'MONTHLY',
        budgetLimit: { amount: monthlyBudgetUsd, unit: 'USD' },
      },
      notificationsWithSubscribers: [told('ACTUAL', 80), told('FORECASTED', 100)],
    });
    // AWS publishes a trial message while it makes the budget.
    budget.node.addDependency(topic);
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
    topic.addToResourcePolicy(
      new PolicyStatement({
        sid: 'BudgetOfThisAccount',
        principals: [new ServicePrincipal('budgets.amazonaws.com')],
        actions: ['sns:Publish'],
        resources: [topic.topicArn],
        conditions: { StringEquals: { 'aws:SourceAccount': this.account } },
      }),
    );
    Validations.of(topic).acknowledge(excuses.alarmsInClear);
    return topic;
  }
}
