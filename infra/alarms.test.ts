/** Alarms, offline: each reaches its readers and has a section that says what to do; what is counted from logs is counted from fields that are there. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { metricNamespace, requestMetric } from '#shared/metrics/embedded.ts';
import { sectionOf } from './rules/alarms.ts';
import { type SynthesisedStage, synthesise } from './testing/synthesised.ts';
import { ofType, properties } from './testing/templates.ts';

const page = readFileSync(path.resolve(import.meta.dirname, '../docs/operate.md'), 'utf8');
const sections = [...page.matchAll(/^## `([a-z-]+)`$/gm)].map(([, name]) => name ?? '');

let all: Readonly<Record<string, SynthesisedStage>>;
let production: SynthesisedStage;
beforeAll(() => {
  all = synthesise();
  production = all.production ?? expect.fail('no stage production');
}, 120_000);

const alarmsOf = (stage: SynthesisedStage) =>
  ofType('AWS::CloudWatch::Alarm', stage)
    .map(properties)
    .map((alarm) => ({ ...alarm, name: String(alarm.AlarmName).replace(`isthmus-${stage.settings.name}-`, '') }));

test('each alarm names its section of docs/operate.md, and no section is about an alarm that is not there', () => {
  const alarms = alarmsOf(production);
  for (const { name, AlarmDescription } of alarms as { name: string; AlarmDescription?: unknown }[]) {
    expect(String(AlarmDescription)).toContain(`(docs/operate.md#${sectionOf(name)})`);
  }
  expect([...new Set([...alarms.map(({ name }) => sectionOf(name)), 'budget'])].sort()).toEqual([...sections].sort());
});

test('latency, throttles of requests, functions and table, and the concurrency that is left are watched', () => {
  const watched = alarmsOf(production).map(({ name }) => name);
  expect(watched).toEqual(
    expect.arrayContaining([
      'api-slow',
      'api-throttled',
      'table-write-throttles',
      'table-read-throttles',
      'functions-throttled',
      'concurrency-headroom',
    ]),
  );
});

test('each alarm tells the topic when it begins and when it is over', () => {
  for (const { AlarmActions, OKActions, name } of alarmsOf(production) as Record<string, unknown>[]) {
    expect([name, AlarmActions, OKActions]).toEqual([
      name,
      [expect.stringContaining('Alarms')],
      [expect.stringContaining('Alarms')],
    ]);
  }
});

test('the topic reaches every subscriber of the stage, and a stage without one is warned of at the synthesis', () => {
  const everything = all.everything ?? expect.fail('no stage everything');
  expect(
    ofType('AWS::SNS::Subscription', everything)
      .map(properties)
      .map(({ Protocol, Endpoint }) => [Protocol, Endpoint]),
  ).toEqual([
    ['email', 'operator@example.com'],
    ['https', 'https://pager.example.com/isthmus'],
  ]);
  expect(production.settings.alarmSubscribers).toEqual([]);
  expect(production.warnings.join()).toContain('alarms of stage production reach no reader');
  expect(everything.warnings.join()).not.toContain('reach no reader');
});

test('the budget of the account tells the same topic, which lets it', () => {
  const [budget] = ofType('AWS::Budgets::Budget', production).map(properties);
  expect(budget).toMatchObject({
    Budget: { BudgetType: 'COST', TimeUnit: 'MONTHLY', BudgetLimit: { Amount: 300, Unit: 'USD' } },
  });
  const told = budget?.NotificationsWithSubscribers as { Notification: object; Subscribers: object[] }[];
  expect(told.map(({ Notification }) => Notification)).toMatchObject([
    { NotificationType: 'ACTUAL', Threshold: 80 },
    { NotificationType: 'FORECASTED', Threshold: 100 },
  ]);
  for (const { Subscribers } of told) {
    expect(Subscribers).toEqual([{ SubscriptionType: 'SNS', Address: expect.stringContaining('Alarms') }]);
  }
  const policies = JSON.stringify(ofType('AWS::SNS::TopicPolicy', production).map(properties));
  expect(policies).toContain('budgets.amazonaws.com');
});

test('the headroom is four fifths of what production sets aside for no function', () => {
  const { accountConcurrency, reservedConcurrency } = production.settings;
  const set = Object.values(reservedConcurrency).reduce((sum, one) => sum + one, 0);
  const headroom = alarmsOf(production).find(({ name }) => name === 'concurrency-headroom');
  expect(headroom).toMatchObject({ Threshold: Math.floor(0.8 * (accountConcurrency - set)) });
});

test('the duration of requests that the alarm watches is the one that the functions embed, for all callers together', () => {
  expect(alarmsOf(production).find(({ name }) => name === 'api-slow')).toMatchObject({
    Namespace: metricNamespace,
    MetricName: requestMetric.duration,
    Dimensions: [{ Name: 'Broker', Value: 'isthmus-production' }],
    ExtendedStatistic: 'p99',
  });
});

test('what is counted from logs feeds an alarm, by name and namespace', () => {
  const counted = ofType('AWS::Logs::MetricFilter', production)
    .map(properties)
    .map(({ FilterPattern, MetricTransformations, LogGroupName }) => {
      const [{ MetricName, MetricNamespace, MetricValue } = {}] = MetricTransformations as Record<string, unknown>[];
      return { FilterPattern, LogGroupName: String(LogGroupName), MetricName, MetricNamespace, MetricValue };
    });
  expect(counted).toMatchObject([
    { FilterPattern: '{ ($.status = "429") && ($.integration = "-") }', MetricName: 'ThrottledRequests' },
  ]);
  for (const { MetricName, MetricNamespace } of counted) {
    expect(alarmsOf(production)).toContainEqual(expect.objectContaining({ MetricName, Namespace: MetricNamespace }));
  }
});
