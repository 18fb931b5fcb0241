/**
 * What an idle stage costs a month, from its templates and the list prices of us-east-1 (no free tier). A type of resource that
 * is not listed here fails a test: the commit that adds one states what an hour of it costs.
 */

export const prices = {
  alarm: 0.1,
  dashboard: 3,
  secret: 0.4,
  lambdaRequest: 0.2e-6,
  lambdaGbSecond: 1.33334e-5,
  schedulerRun: 1e-6,
  readUnit: 0.125e-6,
  logByte: 0.5e-9,
} as const;

/** USD a month for being there. Everything at 0 is paid by use alone. */
const standingPrice: Readonly<Record<string, number>> = {
  'AWS::ApiGateway::Account': 0,
  'AWS::ApiGatewayV2::Api': 0,
  'AWS::ApiGatewayV2::ApiMapping': 0,
  'AWS::ApiGatewayV2::DomainName': 0,
  'AWS::ApiGatewayV2::Integration': 0,
  'AWS::ApiGatewayV2::Route': 0,
  'AWS::ApiGatewayV2::RouteResponse': 0,
  'AWS::ApiGatewayV2::Stage': 0,
  // Without actions.
  'AWS::Budgets::Budget': 0,
  'AWS::CloudFront::Distribution': 0,
  'AWS::CloudFront::OriginAccessControl': 0,
  'AWS::CloudFront::ResponseHeadersPolicy': 0,
  'AWS::CloudWatch::Alarm': prices.alarm,
  'AWS::CloudWatch::Dashboard': prices.dashboard,
  // For functions.
  'AWS::CodeDeploy::Application': 0,
  'AWS::CodeDeploy::DeploymentGroup': 0,
  'AWS::DynamoDB::GlobalTable': 0,
  'AWS::Events::Archive': 0,
  'AWS::Events::EventBus': 0,
  'AWS::Events::Rule': 0,
  'AWS::IAM::Role': 0,
  'AWS::Lambda::Alias': 0,
  'AWS::Lambda::EventInvokeConfig': 0,
  // Lambda reads a table's stream free of charge. An SQS source would be polled for money.
  'AWS::Lambda::EventSourceMapping': 0,
  'AWS::Lambda::Function': 0,
  'AWS::Lambda::Permission': 0,
  'AWS::Lambda::Version': 0,
  'AWS::Logs::LogGroup': 0,
  // The metric behind it costs 0.30 in a month in which it counted anything: an idle stage counts nothing.
  'AWS::Logs::MetricFilter': 0,
  'AWS::S3::Bucket': 0,
  'AWS::S3::BucketPolicy': 0,
  'AWS::SecretsManager::Secret': prices.secret,
  'AWS::SNS::Subscription': 0,
  'AWS::SNS::Topic': 0,
  'AWS::SNS::TopicPolicy': 0,
  'AWS::SQS::Queue': 0,
  'AWS::SQS::QueuePolicy': 0,
  'AWS::Scheduler::Schedule': 0,
  'AWS::Scheduler::ScheduleGroup': 0,
};

/** One run of a schedule that finds nothing to do, as `npm run bench -- cost` counts it: at level `info` it logs nothing. */
const idleRun = { ms: 22, readUnits: 3, logBytes: 0 } as const;

const monthMinutes = 43_200;

export const scheduleRunPrice = (memoryMb: number): number =>
  prices.schedulerRun +
  prices.lambdaRequest +
  (memoryMb / 1_024) * (idleRun.ms / 1_000) * prices.lambdaGbSecond +
  idleRun.readUnits * prices.readUnit +
  idleRun.logBytes * prices.logByte;

export interface IdleStage {
  /** Types of all its resources, one entry for each resource. */
  readonly resourceTypes: readonly string[];
  readonly schedules: readonly { readonly everyMinutes: number; readonly memoryMb: number }[];
}

export interface IdleCost {
  readonly alarms: number;
  readonly dashboards: number;
  readonly secrets: number;
  readonly schedules: number;
  readonly total: number;
}

export function idleCost({ resourceTypes, schedules }: IdleStage): IdleCost {
  const standing = (type: string): number =>
    resourceTypes.filter((each) => each === type).length * (standingPrice[type] ?? 0);
  const unknown = resourceTypes.filter((type) => !(type in standingPrice));
  if (unknown.length > 0) {
    throw new Error(`no price is known for ${[...new Set(unknown)].join(', ')}: add it to infra/rules/idle-cost.ts`);
  }
  const alarms = standing('AWS::CloudWatch::Alarm');
  const dashboards = standing('AWS::CloudWatch::Dashboard');
  const secrets = standing('AWS::SecretsManager::Secret');
  const runs = schedules.reduce(
    (sum, { everyMinutes, memoryMb }) => sum + (monthMinutes / everyMinutes) * scheduleRunPrice(memoryMb),
    0,
  );
  return { alarms, dashboards, secrets, schedules: runs, total: alarms + dashboards + secrets + runs };
}
