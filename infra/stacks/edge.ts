/**
 * The two addresses that the world knows: the HTTP API and the WebSocket API, with their stages, limits and access logs but without
 * routes. Apart from the functions, because join tokens and agents carry these addresses: a release never touches them.
 */
import { Aws, CfnOutput, Duration, RemovalPolicy, Stack, type StackProps, Validations } from 'aws-cdk-lib';
import { AccessLogFormat, CfnAccount } from 'aws-cdk-lib/aws-apigateway';
import {
  CorsHttpMethod,
  DomainName,
  HttpApi,
  HttpStage,
  LogGroupLogDestination,
  SecurityPolicy,
  WebSocketApi,
  WebSocketStage,
} from 'aws-cdk-lib/aws-apigatewayv2';
import { Certificate } from 'aws-cdk-lib/aws-certificatemanager';
import { ManagedPolicy, Role, ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import { FilterPattern, LogGroup, MetricFilter } from 'aws-cdk-lib/aws-logs';
import type { Construct } from 'constructs';
import {
  crossOriginAnswerHeaders,
  crossOriginMethods,
  crossOriginRequestHeaders,
  crossOriginSeconds,
} from '#shared/domain/cross-origin.ts';
import type { Names } from '../constructs/names.ts';
import { throttledMetric } from '../rules/alarms.ts';
import { excuses } from '../rules/excuses.ts';
import type { StageSettings } from '../stages.ts';

/** Caller, route and outcome; no content of headers or bodies. The tenant is in the log of the function, under the same request id: API Gateway cannot know it. */
const accessLog = (fields: Readonly<Record<string, string>>): AccessLogFormat =>
  AccessLogFormat.custom(
    JSON.stringify({
      requestId: '$context.requestId',
      ip: '$context.identity.sourceIp',
      time: '$context.requestTimeEpoch',
      route: '$context.routeKey',
      status: '$context.status',
      // A dash: no function was started, the gateway answered by itself.
      integration: '$context.integrationStatus',
      error: '$context.error.message',
      ...fields,
    }),
  );

export class EdgeStack extends Stack {
  readonly httpApiId: string;
  readonly webSocketApiId: string;
  readonly webSocketStage = 'v1';
  /** What join tokens name and agents sign for; without a trailing slash. */
  readonly publicUrl: string;
  /** Where agents open their doorbell. */
  readonly channelUrl: string;
  /** Where functions ring it. */
  readonly channelEndpoint: string;

  constructor(scope: Construct, id: string, settings: StageSettings, names: Names, props: StackProps) {
    super(scope, id, props);
    const { domain, throttle, corsOrigins } = settings;
    const throttled = { rateLimit: throttle.perSecond, burstLimit: throttle.burst };
    const certificate = domain && Certificate.fromCertificateArn(this, 'Certificate', domain.certificateArn);
    const named = (construct: string, name: string | undefined): DomainName | undefined =>
      name === undefined || certificate === undefined
        ? undefined
        : new DomainName(this, construct, { domainName: name, certificate, securityPolicy: SecurityPolicy.TLS_1_2 });
    const apiDomain = named('ApiDomain', domain?.api);
    const channelDomain = named('ChannelDomain', domain?.channel);

    const httpApi = new HttpApi(this, 'HttpApi', {
      apiName: names.of('api'),
      description: `Isthmus broker, stage ${settings.name}`,
      createDefaultStage: false,
      disableExecuteApiEndpoint: apiDomain !== undefined,
      ...(corsOrigins.length > 0 && {
        corsPreflight: {
          allowOrigins: [...corsOrigins],
          allowMethods: crossOriginMethods.map((method) => CorsHttpMethod[method]),
          allowHeaders: [...crossOriginRequestHeaders],
          exposeHeaders: [...crossOriginAnswerHeaders],
          allowCredentials: false,
          maxAge: Duration.seconds(crossOriginSeconds),
        },
      }),
    });
    const httpLog = this.accessLogGroup('HttpLog', settings, names.logGroup('access-api'));
    new MetricFilter(this, 'Throttled', {
      logGroup: httpLog,
      filterPattern: FilterPattern.literal('{ ($.status = "429") && ($.integration = "-") }'),
      metricNamespace: names.metrics,
      metricName: throttledMetric,
      metricValue: '1',
    });
    // `$default`: with any other name, the stage would be part of the path that the functions see.
    new HttpStage(this, 'HttpStage', {
      httpApi,
      stageName: '$default',
      autoDeploy: true,
      throttle: throttled,
      accessLogSettings: {
        destination: new LogGroupLogDestination(httpLog),
        format: accessLog({ method: '$context.httpMethod', path: '$context.path', ms: '$context.responseLatency' }),
      },
      ...(apiDomain && { domainMapping: { domainName: apiDomain } }),
    });

    const webSocketApi = new WebSocketApi(this, 'WebSocketApi', {
      apiName: names.of('channel'),
      description: `NotifySockets of the Isthmus broker, stage ${settings.name}`,
    });
    const webSocketStage = new WebSocketStage(this, 'WebSocketStage', {
      webSocketApi,
      stageName: this.webSocketStage,
      autoDeploy: true,
      throttle: throttled,
      accessLogSettings: {
        destination: new LogGroupLogDestination(
          this.accessLogGroup('WebSocketLog', settings, names.logGroup('access-channel')),
        ),
        format: accessLog({ event: '$context.eventType', connection: '$context.connectionId' }),
      },
      ...(channelDomain && { domainMapping: { domainName: channelDomain } }),
    });
    if (settings.ownsApiGatewayLogRole) webSocketStage.node.addDependency(this.apiGatewayLogRole());

    // Explicit exports: their names are what the other stacks know, independent of the constructs here.
    this.httpApiId = this.exportValue(httpApi.apiId, { name: names.of('http-api-id') });
    this.webSocketApiId = this.exportValue(webSocketApi.apiId, { name: names.of('websocket-api-id') });
    const host = (apiId: string): string => `${apiId}.execute-api.${Aws.REGION}.${Aws.URL_SUFFIX}`;
    this.publicUrl = `https://${domain?.api ?? host(this.httpApiId)}`;
    this.channelEndpoint = `https://${host(this.webSocketApiId)}/${this.webSocketStage}`;
    this.channelUrl = `wss://${domain?.channel ?? `${host(this.webSocketApiId)}/${this.webSocketStage}`}`;
    new CfnOutput(this, 'PublicUrl', { value: `https://${domain?.api ?? host(httpApi.apiId)}` });
    new CfnOutput(this, 'ChannelUrl', {
      value: `wss://${domain?.channel ?? `${host(webSocketApi.apiId)}/${this.webSocketStage}`}`,
    });
    if (apiDomain) new CfnOutput(this, 'ApiAlias', { value: apiDomain.regionalDomainName });
    if (channelDomain) new CfnOutput(this, 'ChannelAlias', { value: channelDomain.regionalDomainName });
  }

  private accessLogGroup(id: string, settings: StageSettings, logGroupName: string): LogGroup {
    return new LogGroup(this, id, {
      logGroupName,
      retention: settings.logDays,
      removalPolicy: RemovalPolicy.DESTROY,
    });
  }

  /** An account has one such role per Region. Kept at destruction, because other APIs may log through it. */
  private apiGatewayLogRole(): CfnAccount {
    const role = new Role(this, 'ApiGatewayLogRole', {
      assumedBy: new ServicePrincipal('apigateway.amazonaws.com'),
      managedPolicies: [ManagedPolicy.fromAwsManagedPolicyName('service-role/AmazonAPIGatewayPushToCloudWatchLogs')],
    });
    role.applyRemovalPolicy(RemovalPolicy.RETAIN);
    Validations.of(role).acknowledge(excuses.accountLogRole);
    const account = new CfnAccount(this, 'ApiGatewayAccount', { cloudWatchRoleArn: role.roleArn });
    account.applyRemovalPolicy(RemovalPolicy.RETAIN);
    return account;
  }
}
