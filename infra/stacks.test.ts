import { readFileSync } from 'node:fs';
import path from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { cloudFunctions } from '#functions/catalogue.ts';
import { CloudEnv } from '#functions/runtime/env.ts';
import { minutesOf } from './broker-stage.ts';
import { isAsynchronous } from './constructs/access.ts';
import { readable } from './constructs/readable.ts';
import { wildcardExcuse } from './rules/excuses.ts';
import { idleCost, prices } from './rules/idle-cost.ts';
import { type Resource, type StackTemplate, type SynthesisedStage, synthesise } from './testing/synthesised.ts';

const root = path.resolve(import.meta.dirname, '..');
let all: Readonly<Record<string, SynthesisedStage>>;
beforeAll(() => {
  all = synthesise();
}, 120_000);

const stage = (name: string): SynthesisedStage => all[name]!;
const production = (): SynthesisedStage => stage('production');
const stack = (part: string, of = production()): StackTemplate => of.stacks[part]!;
const everything = (of: SynthesisedStage): [string, Resource][] =>
  Object.values(of.stacks).flatMap(({ resources }) => Object.entries(resources));
const ofType = (type: string, of = production()): Resource[] =>
  everything(of)
    .filter(([, { Type }]) => Type === type)
    .map(([, resource]) => resource);
/** Properties with every reference as text. */
const plain = (value: unknown): unknown => {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(plain);
  const keys = Object.keys(value);
  if (keys.length === 1 && /^(Ref|Fn::)/.test(keys[0]!)) return readable(value);
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, plain(inner)]));
};
const properties = (resource: Resource): Record<string, unknown> =>
  plain(resource.Properties) as Record<string, unknown>;
const functionOf = (name: string, of = production()): Resource =>
  ofType('AWS::Lambda::Function', of).find(
    ({ Properties }) => Properties.FunctionName === `isthmus-${of.settings.name}-${name}`,
  )!;

describe('functions', () => {
  test('each file of the catalogue is one, on arm64 and Node 24, with a log of its own that ends', () => {
    const found = ofType('AWS::Lambda::Function').map(properties);
    expect(found.map(({ Description }) => Description).sort()).toEqual(cloudFunctions.map(({ file }) => file).sort());
    for (const fn of found) {
      expect(fn).toMatchObject({ Architectures: ['arm64'], Runtime: 'nodejs24.x', Handler: 'index.handler' });
      expect(fn).not.toHaveProperty('VpcConfig');
      expect(fn).not.toHaveProperty('TracingConfig');
      expect(fn).not.toHaveProperty('Layers');
      expect(fn.LoggingConfig).toHaveProperty('LogGroup');
    }
    const logs = ofType('AWS::Logs::LogGroup').map(properties);
    expect(logs).toHaveLength(found.length + 2);
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
    const api = stack('api').resources;
    const routes = Object.values(api)
      .filter(({ Type }) => Type === 'AWS::ApiGatewayV2::Route')
      .map((route) => {
        const { RouteKey, Target } = properties(route);
        const integration = api[/<([^>]+)>/.exec(String(Target))?.[1] ?? '']!;
        const uri = String(properties(integration).IntegrationUri);
        const target = api[/<(\w+)\.Arn>/.exec(uri)?.[1] ?? '']!;
        return `${RouteKey} -> ${target.Properties.Description}`;
      });
    const wanted = cloudFunctions.flatMap(({ file, trigger }) =>
      trigger.kind === 'http' ? [`${trigger.method} ${trigger.path} -> ${file}`] : [],
    );
    expect(routes.sort()).toEqual(wanted.sort());
  });

  test('lets the gateway start a function for its own route only', () => {
    const sources = ofType('AWS::Lambda::Permission').map((permission) => String(properties(permission).SourceArn));
    expect(sources.filter((source) => /execute-api.*\/\*\/\*\/\*$|^\*$/.test(source))).toEqual([]);
    expect(sources).toHaveLength(
      cloudFunctions.filter(({ trigger }) => !['stream', 'schedule'].includes(trigger.kind)).length,
    );
  });

  test('is throttled, and logs who asked for what', () => {
    const found = ofType('AWS::ApiGatewayV2::Stage').map(properties);
    expect(found.map(({ StageName }) => StageName).sort()).toEqual(['$default', 'v1']);
    for (const each of found) {
      expect(each).toMatchObject({ DefaultRouteSettings: { ThrottlingRateLimit: 2_000, ThrottlingBurstLimit: 4_000 } });
      const log = JSON.parse((each.AccessLogSettings as { Format: string }).Format) as Record<string, string>;
      expect(log).toMatchObject({ requestId: '$context.requestId', status: '$context.status' });
      expect(Object.values(log).filter((value) => /header|authorizer|body|querystring/i.test(value))).toEqual([]);
    }
  });

  test('answers an agent on its doorbell', () => {
    const keys = ofType('AWS::ApiGatewayV2::Route').map((route) => String(properties(route).RouteKey));
    expect(keys.filter((key) => key.startsWith('$')).sort()).toEqual(['$connect', '$default', '$disconnect']);
    expect(ofType('AWS::ApiGatewayV2::RouteResponse')).toHaveLength(1);
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
      CorsConfiguration: { AllowOrigins: ['https://portal.example.com'] },
    });
    const variables = properties(functionOf('channel-connect', of)).Environment as { Variables: object };
    expect(variables.Variables).toMatchObject({ BROKER_URL: 'https://broker.example.com' });
    expect(ofType('AWS::ApiGateway::Account', of)).toEqual([]);
  });
});

describe('the table', () => {
  test('is paid by use, streams its changes, forgets what expired, and can go back in time', () => {
    const [table] = ofType('AWS::DynamoDB::GlobalTable').map(properties);
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
    expect(policies(production())).toEqual([['Retain', 'Retain']]);
    expect(policies(stage('dev'))).toEqual([['Delete', 'Delete']]);
    expect(Object.values(production().stacks).every(({ terminationProtection }) => terminationProtection)).toBe(true);
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
    for (const part of ['api', 'channel', 'events']) {
      expect(stack(part, of).text).not.toMatch(/table\/isthmus-everything[^-]/);
    }
  });
});

describe('what nobody waits for', () => {
  const asynchronous = cloudFunctions.filter(isAsynchronous);

  test.each(asynchronous)('$name ends in dead letters that raise an alarm', ({ name, trigger }) => {
    const queue = `isthmus-production-${name}-dead`;
    const found = ofType('AWS::SQS::Queue').find(({ Properties }) => Properties.QueueName === queue);
    expect(found?.Properties).toMatchObject({ SqsManagedSseEnabled: true, MessageRetentionPeriod: 14 * 86_400 });
    const watching = ofType('AWS::CloudWatch::Alarm')
      .map(properties)
      .filter(({ Dimensions }) => JSON.stringify(Dimensions ?? []).includes(`"${queue}"`));
    expect(watching).toMatchObject([
      {
        Threshold: 1,
        AlarmActions: [expect.stringContaining('Alarms')],
        OKActions: [expect.stringContaining('Alarms')],
      },
    ]);
    // Failures of the function itself, and failures to start it.
    const prefix = name.replaceAll('-', '');
    const own = Object.entries(stack('events').resources).filter(([id]) => id.startsWith(prefix));
    const edges = own.filter(([, { Type }]) =>
      /EventSourceMapping|EventInvokeConfig|Events::Rule$|Schedule$/.test(Type),
    );
    expect(edges.map(([, { Type }]) => Type).sort()).toEqual(
      {
        stream: ['AWS::Lambda::EventSourceMapping'],
        event: ['AWS::Events::Rule', 'AWS::Lambda::EventInvokeConfig'],
        schedule: ['AWS::Lambda::EventInvokeConfig', 'AWS::Scheduler::Schedule'],
      }[trigger.kind as 'stream'],
    );
    for (const [, edge] of edges) expect(JSON.stringify(properties(edge))).toContain(`${prefix}DeadLetters`);
  });

  test('is started by exactly the events of the catalogue', () => {
    const rules = ofType('AWS::Events::Rule').map(({ Properties }) => [Properties.Name, Properties.EventPattern]);
    const wanted = cloudFunctions.flatMap(({ name, trigger }) =>
      trigger.kind === 'event' ? [[`isthmus-production-${name}`, trigger.pattern]] : [],
    );
    expect(rules).toEqual(wanted);
  });

  test('reads the outbox in halves until a poisonous record is alone, and gives up on that', () => {
    expect(ofType('AWS::Lambda::EventSourceMapping').map(properties)).toMatchObject([
      {
        BisectBatchOnFunctionError: true,
        FunctionResponseTypes: ['ReportBatchItemFailures'],
        MaximumRetryAttempts: 10,
        MaximumRecordAgeInSeconds: 6 * 3_600,
        StartingPosition: 'TRIM_HORIZON',
      },
    ]);
  });

  test('is noticed when a schedule stops', () => {
    const silent = ofType('AWS::CloudWatch::Alarm').filter(
      ({ Properties }) => Properties.TreatMissingData === 'breaching',
    );
    expect(silent).toHaveLength(cloudFunctions.filter(({ trigger }) => trigger.kind === 'schedule').length);
  });

  test('says in each alarm what to do', () => {
    for (const { Properties } of ofType('AWS::CloudWatch::Alarm')) {
      expect(String(Properties.AlarmDescription).length).toBeGreaterThan(60);
    }
  });

  test('can be replayed from the archive', () => {
    expect(ofType('AWS::Events::Archive')).toMatchObject([
      { DeletionPolicy: 'Retain', Properties: { ArchiveName: 'isthmus-production', RetentionDays: 30 } },
    ]);
  });
});

describe('rights', () => {
  interface Statement {
    readonly Effect: string;
    readonly Action: string | readonly string[];
    readonly Resource: string | readonly string[];
  }
  const list = (value: string | readonly string[]): readonly string[] => (typeof value === 'string' ? [value] : value);
  const statementsOf = (role: Resource): Statement[] =>
    ((properties(role).Policies ?? []) as { PolicyDocument: { Statement: Statement[] } }[]).flatMap(
      ({ PolicyDocument }) => PolicyDocument.Statement,
    );
  type Right = readonly [resource: string, actions: readonly string[]];
  const rightsOf = (of: SynthesisedStage): [holder: string, rights: readonly Right[]][] =>
    everything(of)
      .filter(([, { Type }]) => Type === 'AWS::IAM::Role')
      .map(([id, role]): [string, Right[]] => [
        String(role.Properties.Description ?? id),
        statementsOf(role).flatMap(({ Action, Resource }) =>
          list(Resource).map((resource): Right => [resource, list(Action)]),
        ),
      ])
      .sort(([a], [b]) => (a < b ? -1 : 1));

  /** As the page writes it, which knows neither a stage nor what AWS will fill in. */
  const onPage = (text: string): string =>
    text
      .replace('isthmus-production-table-stream', 'arn:aws:dynamodb:REGION:ACCOUNT:table/isthmus-STAGE/stream/TIME')
      .replace('isthmus-production-websocket-api-id', 'WEBSOCKET-API')
      .replaceAll(/isthmus([-/])production/g, 'isthmus$1STAGE')
      .replaceAll('<AWS::Partition>', 'aws')
      .replaceAll('<AWS::Region>', 'REGION')
      .replaceAll('<AWS::AccountId>', 'ACCOUNT');

  test('of every function are those that docs/reference/functions.md lists, and no others', () => {
    const page = readFileSync(path.join(root, 'docs/reference/functions.md'), 'utf8');
    const listed = page
      .split('\n')
      .filter((line) => line.startsWith('| `'))
      .map((line) => line.split(' | '))
      .map(([name, , , may]) => [name?.slice(2), may?.replace(/ \|$/, '')]);
    const deployed = cloudFunctions.map(({ name, file }) => {
      const rights = rightsOf(production()).find(([holder]) => holder === `${file} of stage production`)?.[1] ?? [];
      return [`\`${name}\``, rights.map(([to, actions]) => `${actions.join(', ')} on \`${onPage(to)}\``).join('<br>')];
    });
    expect(deployed).toEqual(listed);
  });

  test('of everything else are to start one function and to leave its dead letters', () => {
    const others = rightsOf(production()).filter(([holder]) => !holder.startsWith('functions/'));
    expect(others.map(([holder]) => holder.replace(/Role.*/, '')).sort()).toEqual([
      'ApiGatewayLog',
      ...cloudFunctions
        .filter(({ trigger }) => trigger.kind === 'schedule')
        .map(({ name }) => `${name.replaceAll('-', '')}Schedule`),
    ]);
    const rights = others.flatMap(([, each]) => each.map(([to, actions]) => `${actions.join(' ')} ${onPage(to)}`));
    expect(rights.filter((right) => !/^(lambda:InvokeFunction|sqs:SendMessage) arn:[^*]+$/.test(right))).toEqual([]);
  });

  test('name actions and resources in full, unless AWS names them at run time', () => {
    for (const of of Object.values(all)) {
      for (const role of ofType('AWS::IAM::Role', of)) {
        for (const { Effect, Action, Resource } of statementsOf(role)) {
          expect(Effect).toBe('Allow');
          expect(list(Action).filter((action) => action.includes('*'))).toEqual([]);
          for (const resource of list(Resource)) expect(() => wildcardExcuse(resource)).not.toThrow();
        }
      }
    }
  });

  test('come from the role’s own list alone', () => {
    expect(ofType('AWS::IAM::Policy')).toEqual([]);
    expect(ofType('AWS::IAM::ManagedPolicy')).toEqual([]);
    const managed = ofType('AWS::IAM::Role').filter(({ Properties }) => 'ManagedPolicyArns' in Properties);
    expect(managed.map((role) => properties(role).ManagedPolicyArns)).toEqual([
      ['arn:<AWS::Partition>:iam::aws:policy/service-role/AmazonAPIGatewayPushToCloudWatchLogs'],
    ]);
  });

  test('to publish and to read the stream are the dispatcher’s alone', () => {
    const holders = (action: string): string[] =>
      rightsOf(production())
        .filter(([, rights]) => rights.some(([, actions]) => actions.includes(action)))
        .map(([holder]) => holder.replace(/ of stage .*/, ''));
    expect(holders('events:PutEvents')).toEqual(['functions/events/dispatch.ts']);
    expect(holders('dynamodb:GetRecords')).toEqual(['functions/events/dispatch.ts']);
    expect(holders('dynamodb:Scan')).toEqual([]);
    expect(holders('dynamodb:DeleteTable')).toEqual([]);
  });
});

describe('contracts with what is deployed already', () => {
  test('keep the identities of everything that holds data or an address', () => {
    const pinned = (part: string, types: RegExp): [string, unknown][] =>
      Object.entries(stack(part).resources)
        .filter(([, { Type }]) => types.test(Type))
        .map(([id, { Properties }]) => [id, Properties.TableName ?? Properties.Name ?? Properties.ArchiveName]);
    expect([
      ...pinned('data', /./),
      ...pinned('edge', /::Api$/),
      ...pinned('events', /EventBus|Archive|ScheduleGroup/),
    ]).toEqual([
      ['TableCD117FA1', 'isthmus-production'],
      ['HttpApiF5A9A8A7', 'isthmus-production-api'],
      ['WebSocketApi34BCF99B', 'isthmus-production-channel'],
      ['BusEA82B648', 'isthmus-production'],
      ['Archive', 'isthmus-production'],
      ['Schedules', 'isthmus-production-schedules'],
    ]);
  });

  test('keep the names under which stacks know each other', () => {
    const exported = Object.values(production().stacks).flatMap(({ outputs }) =>
      Object.values(outputs).flatMap(({ Export }) => (Export ? [Export.Name] : [])),
    );
    expect(exported.sort()).toEqual([
      'isthmus-production-http-api-id',
      'isthmus-production-table-stream',
      'isthmus-production-websocket-api-id',
    ]);
    const imported = Object.values(production().stacks).flatMap(({ text }) =>
      [...text.matchAll(/"Fn::ImportValue":"([^"]+)"/g)].map(([, name]) => name),
    );
    expect([...new Set(imported)].sort()).toEqual(exported);
  });

  test('keep far from the limit of 500 resources a stack', () => {
    for (const [part, { resources }] of Object.entries(production().stacks)) {
      expect(Object.keys(resources).length, part).toBeLessThanOrEqual(470);
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
    for (const of of [stage('dev'), production()]) {
      const { alarms, dashboards, schedules, total } = costOf(of);
      const usd = (amount: number): string => amount.toFixed(2);
      expect(page).toContain(
        `| ${of.settings.name} | ${Math.round(alarms / prices.alarm)} × 0.10 = ${usd(alarms)} | ${usd(dashboards)} | ${usd(schedules)} | **${usd(total)}** |`,
      );
    }
  });
});
