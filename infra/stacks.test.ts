import { readFileSync } from 'node:fs';
import path from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { cloudFunctions } from '#functions/catalogue.ts';
import { CloudEnv } from '#functions/runtime/env.ts';
import {
  crossOriginAnswerHeaders,
  crossOriginMethods,
  crossOriginRequestHeaders,
  crossOriginSeconds,
} from '#shared/domain/cross-origin.ts';
import { minutesOf } from './broker-stage.ts';
import { idleCost, prices } from './rules/idle-cost.ts';
import { type SynthesisedStage, synthesise } from './testing/synthesised.ts';
import { everything, functionOf, ofType, properties, stack } from './testing/templates.ts';

const root = path.resolve(import.meta.dirname, '..');
let all: Readonly<Record<string, SynthesisedStage>>;
let production: SynthesisedStage;
beforeAll(() => {
  all = synthesise();
  production = stage('production');
}, 120_000);

function stage(name: string): SynthesisedStage {
  const found = all[name];
  if (found === undefined) throw new Error(`no stage ${name}`);
  return found;
}

describe('functions', () => {
  test('each file of the catalogue is one, on arm64 and Node 24, and logs into the group of its part, which ends', () => {
    const found = ofType('AWS::Lambda::Function', production).map(properties);
    expect(found.map(({ Description }) => Description).sort()).toEqual(cloudFunctions.map(({ file }) => file).sort());
    for (const fn of found) {
      expect(fn).toMatchObject({ Architectures: ['arm64'], Runtime: 'nodejs24.x', Handler: 'index.handler' });
      expect(fn).not.toHaveProperty('VpcConfig');
      expect(fn).not.toHaveProperty('TracingConfig');
      expect(fn).not.toHaveProperty('Layers');
      expect(fn.LoggingConfig).toHaveProperty('LogGroup');
    }
    const logs = ofType('AWS::Logs::LogGroup', production).map(properties);
    // One for each part, so that one query finds a request; and the two of the gateway itself.
    expect(logs.map(({ LogGroupName }) => LogGroupName).sort()).toEqual(
      ['access-api', 'access-channel', 'api', 'channel', 'events'].map((part) => `/isthmus/production/${part}`),
    );
    expect(new Set(logs.map(({ RetentionInDays }) => RetentionInDays))).toEqual(new Set([90]));
  });

  test.each(['production', 'everything'])('find in their environment what they read (%s)', (name) => {
    for (const fn of ofType('AWS::Lambda::Function', stage(name)).map(properties)) {
      const variables = (fn.Environment as { Variables: Record<string, string> }).Variables;
      // What AWS fills in at deployment: ids and Regions, which are letters, digits and dashes.
      const filled = Object.fromEntries(
        Object.entries(variables).map(([key, value]) => [key, value.replaceAll(/<[^>]+>/g, 'x')]),
      );
      expect(CloudEnv.safeParse(filled).error).toBeUndefined();
      expect(Object.keys(variables).filter((key) => !(key in CloudEnv.shape))).toEqual([]);
    }
  });

  test('have names that AWS accepts, all different', () => {
    for (const of of Object.values(all)) {
      const names = ofType('AWS::Lambda::Function', of).map(({ Properties }) => String(Properties.FunctionName));
      expect(names.filter((name) => name.length > 64)).toEqual([]);
      expect(new Set(names).size).toBe(names.length);
    }
  });
});

describe('the edge', () => {
  test('sends each route of the catalogue to its function and to no other', () => {
    const api = Object.fromEntries(everything(production));
    const routes = Object.values(api)
      .filter(({ Type, Properties }) => Type === 'AWS::ApiGatewayV2::Route' && !/^\$/.test(String(Properties.RouteKey)))
      .map((route) => {
        const { RouteKey, Target } = properties(route);
        const integration = api[/<([^>]+)>/.exec(String(Target))?.[1] ?? '']!;
        const uri = String(properties(integration).IntegrationUri);
        const alias = api[/<(\w+)>\/invocations$/.exec(uri)?.[1] ?? /^<(\w+)>$/.exec(uri)?.[1] ?? '']!;
        const target = api[/<(\w+)>/.exec(String(properties(alias).FunctionName))?.[1] ?? '']!;
        return `${RouteKey} -> ${target.Properties.Description}`;
      });
    const wanted = cloudFunctions.flatMap(({ file, trigger }) =>
      trigger.kind === 'http' ? [`${trigger.method} ${trigger.path} -> ${file}`] : [],
    );
    expect(routes.sort()).toEqual(wanted.sort());
  });

  test('lets the gateway start a function for its own route only', () => {
    const sources = ofType('AWS::Lambda::Permission', production).map((permission) =>
      String(properties(permission).SourceArn),
    );
    expect(sources.filter((source) => /execute-api.*\/\*\/\*\/\*$|^\*$/.test(source))).toEqual([]);
    expect(sources).toHaveLength(
      cloudFunctions.filter(({ trigger }) => !['stream', 'schedule'].includes(trigger.kind)).length,
    );
  });

  test('is throttled, and logs caller and route', () => {
    const found = ofType('AWS::ApiGatewayV2::Stage', production).map(properties);
    expect(found.map(({ StageName }) => StageName).sort()).toEqual(['$default', 'v1']);
    for (const each of found) {
      expect(each).toMatchObject({ DefaultRouteSettings: { ThrottlingRateLimit: 2_000, ThrottlingBurstLimit: 4_000 } });
      const log = JSON.parse((each.AccessLogSettings as { Format: string }).Format) as Record<string, string>;
      expect(log).toMatchObject({
        requestId: '$context.requestId',
        status: '$context.status',
        integration: '$context.integrationStatus',
      });
      expect(Object.values(log).filter((value) => /header|authorizer|body|querystring/i.test(value))).toEqual([]);
    }
  });

  test('has a function that says in our words that there is no such route', () => {
    const api = ['api-peerings', 'api-receivers', 'api-tenants'].flatMap((part) =>
      Object.values(stack(part, production).resources),
    );
    const keys = api
      .filter(({ Type }) => Type === 'AWS::ApiGatewayV2::Route')
      .map((route) => String(properties(route).RouteKey));
    expect(keys.filter((key) => key.startsWith('$'))).toEqual(['$default']);
    expect(functionOf('api-no-route', production).Properties.Description).toBe('functions/api/no-route.ts');
  });

  test('answers an agent on its doorbell', () => {
    const keys = Object.values(stack('channel', production).resources)
      .filter(({ Type }) => Type === 'AWS::ApiGatewayV2::Route')
      .map((route) => String(properties(route).RouteKey));
    expect(keys.filter((key) => key.startsWith('$')).sort()).toEqual(['$connect', '$default', '$disconnect']);
    expect(ofType('AWS::ApiGatewayV2::RouteResponse', production)).toHaveLength(1);
  });

  test('takes names of our own, and then hides the others', () => {
    const of = stage('everything');
    expect(ofType('AWS::ApiGatewayV2::DomainName', of).map(({ Properties }) => Properties.DomainName)).toEqual([
      'broker.example.com',
      'bell.example.com',
    ]);
    expect(ofType('AWS::ApiGatewayV2::ApiMapping', of)).toHaveLength(2);
    const [http] = ofType('AWS::ApiGatewayV2::Api', of).map(properties);
    expect(http).toMatchObject({
      DisableExecuteApiEndpoint: true,
      // Without AllowCredentials, and with nothing for any other origin.
      CorsConfiguration: {
        AllowCredentials: false,
        AllowOrigins: ['https://portal.example.com'],
        AllowMethods: [...crossOriginMethods],
        AllowHeaders: [...crossOriginRequestHeaders],
        ExposeHeaders: [...crossOriginAnswerHeaders],
        MaxAge: crossOriginSeconds,
      },
    });
    expect(ofType('AWS::ApiGatewayV2::Api', production).map((api) => properties(api).CorsConfiguration)).toEqual([
      undefined,
      undefined,
    ]);
    const variables = properties(functionOf('channel-connect', of)).Environment as { Variables: object };
    expect(variables.Variables).toMatchObject({
      BROKER_URL: 'https://broker.example.com',
      SOCKET_URL: 'wss://bell.example.com',
    });
    expect(ofType('AWS::ApiGateway::Account', of)).toEqual([]);
  });
});

describe('the table', () => {
  test('is paid by use, streams its changes, forgets what expired, and can go back in time', () => {
    const [table] = ofType('AWS::DynamoDB::GlobalTable', production).map(properties);
    expect(table).toMatchObject({
      TableName: 'isthmus-production',
      BillingMode: 'PAY_PER_REQUEST',
      StreamSpecification: { StreamViewType: 'NEW_IMAGE' },
      TimeToLiveSpecification: { AttributeName: 'ttl', Enabled: true },
      KeySchema: [
        { AttributeName: 'pk', KeyType: 'HASH' },
        { AttributeName: 'sk', KeyType: 'RANGE' },
      ],
      Replicas: [
        {
          DeletionProtectionEnabled: true,
          PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled: true, RecoveryPeriodInDays: 35 },
        },
      ],
    });
  });

  test('outlives its stack in production, and only there', () => {
    const policies = (of: SynthesisedStage) =>
      ofType('AWS::DynamoDB::GlobalTable', of).map((table) => [table.DeletionPolicy, table.UpdateReplacePolicy]);
    expect(policies(production)).toEqual([['Retain', 'Retain']]);
    expect(policies(stage('dev'))).toEqual([['Delete', 'Delete']]);
    expect(Object.values(production.stacks).every(({ terminationProtection }) => terminationProtection)).toBe(true);
  });

  test('gives way to a restored one everywhere but in its own stack', () => {
    const of = stage('everything');
    const restored = 'isthmus-everything-restored';
    const names = ofType('AWS::Lambda::Function', of).map(
      (fn) => (properties(fn).Environment as { Variables: Record<string, string> }).Variables.TABLE_NAME,
    );
    expect(new Set(names)).toEqual(new Set([restored]));
    expect(ofType('AWS::DynamoDB::GlobalTable', of)[0]?.Properties.TableName).toBe('isthmus-everything');
    expect(ofType('AWS::Lambda::EventSourceMapping', of)[0]?.Properties.EventSourceArn).toBe(
      of.settings.restoredTable?.streamArn,
    );
    for (const part of ['api-peerings', 'api-receivers', 'api-tenants', 'channel', 'events', 'foundation']) {
      expect(stack(part, of).text).not.toMatch(/table\/isthmus-everything[^-]/);
    }
  });
});

describe('an idle stack', () => {
  const costOf = (of: SynthesisedStage) =>
    idleCost({
      resourceTypes: everything(of).map(([, { Type }]) => Type),
      schedules: cloudFunctions.flatMap(({ trigger, memoryMb }) =>
        trigger.kind === 'schedule' ? [{ everyMinutes: minutesOf(trigger.rate), memoryMb }] : [],
      ),
    });

  test('has nothing that is paid by the hour, and costs at most 5 USD a month', () => {
    for (const of of Object.values(all)) expect(costOf(of).total).toBeLessThanOrEqual(5);
  });

  test('costs what docs/deploy.md says', () => {
    const page = readFileSync(path.join(root, 'docs/deploy.md'), 'utf8');
    for (const of of [stage('dev'), production]) {
      const { alarms, dashboards, secrets, schedules, total } = costOf(of);
      const usd = (amount: number): string => amount.toFixed(2);
      expect(page).toContain(
        `| ${of.settings.name} | ${Math.round(alarms / prices.alarm)} × 0.10 = ${usd(alarms)} | ${usd(dashboards)} | ${usd(secrets)} | ${usd(schedules)} | **${usd(total)}** |`,
      );
    }
  });
});
