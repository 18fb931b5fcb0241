/** The templates of stage production: its asynchronous work, what is deployed already, and concurrent executions. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { cloudFunctions } from '#functions/catalogue.ts';
import { isAsynchronous } from './constructs/access.ts';
import { type SynthesisedStage, synthesise } from './testing/synthesised.ts';
import { ofType, properties, stack } from './testing/templates.ts';

const root = path.resolve(import.meta.dirname, '..');
let production: SynthesisedStage;
beforeAll(() => {
  production = synthesise().production ?? expect.fail('no stage production');
}, 120_000);

describe('asynchronous work', () => {
  const asynchronous = cloudFunctions.filter(isAsynchronous);

  test.each(asynchronous)('$name ends in dead letters that raise an alarm', ({ name, trigger }) => {
    const queue = `isthmus-production-${name}-dead`;
    const found = ofType('AWS::SQS::Queue', production).find(({ Properties }) => Properties.QueueName === queue);
    expect(found?.Properties).toMatchObject({ SqsManagedSseEnabled: true, MessageRetentionPeriod: 14 * 86_400 });
    const watching = ofType('AWS::CloudWatch::Alarm', production)
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
    const own = Object.entries(stack('events', production).resources).filter(([id]) => id.startsWith(prefix));
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
    const rules = ofType('AWS::Events::Rule', production).map(({ Properties }) => [
      Properties.Name,
      Properties.EventPattern,
    ]);
    const wanted = cloudFunctions.flatMap(({ name, trigger }) =>
      trigger.kind === 'event' ? [[`isthmus-production-${name}`, trigger.pattern]] : [],
    );
    expect(rules).toEqual(wanted);
  });

  test('reads the outbox in halves until a poisonous record is alone, and gives up on that', () => {
    expect(ofType('AWS::Lambda::EventSourceMapping', production).map(properties)).toMatchObject([
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
    const silent = ofType('AWS::CloudWatch::Alarm', production).filter(
      ({ Properties }) => Properties.TreatMissingData === 'breaching',
    );
    expect(silent).toHaveLength(cloudFunctions.filter(({ trigger }) => trigger.kind === 'schedule').length);
  });

  test('says in each alarm what to do', () => {
    for (const { Properties } of ofType('AWS::CloudWatch::Alarm', production)) {
      expect(String(Properties.AlarmDescription).length).toBeGreaterThan(60);
    }
  });

  test('can be replayed from the archive', () => {
    expect(ofType('AWS::Events::Archive', production)).toMatchObject([
      { DeletionPolicy: 'Retain', Properties: { ArchiveName: 'isthmus-production', RetentionDays: 30 } },
    ]);
  });
});

describe('contracts with what is deployed already', () => {
  test('keep the identities of everything that holds data or an address', () => {
    const pinned = (part: string, types: RegExp): [string, unknown][] =>
      Object.entries(stack(part, production).resources)
        .filter(([, { Type }]) => types.test(Type))
        .map(([id, { Properties }]) => [id, Properties.TableName ?? Properties.Name ?? Properties.ArchiveName]);
    expect([
      ...pinned('data', /./),
      ...pinned('edge', /::Api$/),
      ...pinned('events', /EventBus|Archive|ScheduleGroup/),
    ]).toEqual([
      ['TableCD117FA1', 'isthmus-production'],
      ['Keyring5277DB2C', 'isthmus-production-keyring'],
      ['HttpApiF5A9A8A7', 'isthmus-production-api'],
      ['WebSocketApi34BCF99B', 'isthmus-production-channel'],
      ['BusEA82B648', 'isthmus-production'],
      ['Archive', 'isthmus-production'],
      ['Schedules', 'isthmus-production-schedules'],
    ]);
  });

  test('keep the names under which stacks know each other', () => {
    const exported = Object.values(production.stacks).flatMap(({ outputs }) =>
      Object.values(outputs).flatMap(({ Export }) => (Export ? [Export.Name] : [])),
    );
    expect(exported.sort()).toEqual([
      'isthmus-production-http-api-id',
      'isthmus-production-table-stream',
      'isthmus-production-websocket-api-id',
    ]);
    const imported = Object.values(production.stacks).flatMap(({ text }) =>
      [...text.matchAll(/"Fn::ImportValue":"([^"]+)"/g)].map(([, name]) => name),
    );
    expect([...new Set(imported)].sort()).toEqual(exported);
  });

  test('keep far from the limit of 500 resources a stack', () => {
    for (const [part, { resources }] of Object.entries(production.stacks)) {
      expect(Object.keys(resources).length, part).toBeLessThanOrEqual(300);
    }
  });
});

describe('concurrent executions', () => {
  const ofAccount = 1_000;
  const reserved = (): ReadonlyMap<string, number> =>
    new Map(
      ofType('AWS::Lambda::Function', production).flatMap(({ Properties }) =>
        Properties.ReservedConcurrentExecutions === undefined
          ? []
          : [
              [
                String(Properties.FunctionName).replace('isthmus-production-', ''),
                Number(Properties.ReservedConcurrentExecutions),
              ],
            ],
      ),
    );
  const sum = (numbers: readonly number[]): number => numbers.reduce((a, b) => a + b, 0);

  test('are set aside for every function that agents call', () => {
    const agents = cloudFunctions.filter(({ file }) => file.startsWith('functions/channel/')).map(({ name }) => name);
    expect(agents.length).toBeGreaterThan(5);
    expect(agents.filter((name) => !reserved().has(name))).toEqual([]);
  });

  test('of long polls are bounded, and leave more than half of the account to everything else', () => {
    const { paths } = JSON.parse(readFileSync(path.join(root, 'functions/api/openapi.json'), 'utf8')) as {
      readonly paths: Readonly<
        Record<string, Readonly<Record<string, { readonly parameters?: readonly { readonly name: string }[] }>>>
      >;
    };
    const waits = (method: string, at: string): boolean =>
      paths[at]?.[method.toLowerCase()]?.parameters?.some(({ name }) => name === 'wait') === true;
    const waiting = cloudFunctions.flatMap(({ name, trigger }) =>
      trigger.kind === 'http' && waits(trigger.method, trigger.path) ? [name] : [],
    );
    expect(waiting.length).toBeGreaterThan(5);
    expect(waiting.filter((name) => !reserved().has(name))).toEqual([]);
    expect(sum(waiting.map((name) => reserved().get(name) ?? ofAccount))).toBeLessThan(ofAccount / 2);
  });

  test('leave the hundred that AWS keeps unreserved, and two hundred more', () => {
    expect(ofAccount - sum([...reserved().values()])).toBeGreaterThanOrEqual(300);
  });
});
