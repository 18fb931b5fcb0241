/** The rights of every role in the templates of stage production. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { cloudFunctions } from '#functions/catalogue.ts';
import { wildcardExcuse } from './rules/excuses.ts';
import { type Resource, type SynthesisedStage, synthesise } from './testing/synthesised.ts';
import { everything, ofType, properties } from './testing/templates.ts';

const root = path.resolve(import.meta.dirname, '..');
let production: SynthesisedStage;
beforeAll(() => {
  production = synthesise().production ?? expect.fail('no stage production');
}, 120_000);

describe('rights', () => {
  interface Statement {
    readonly Effect: string;
    readonly Action: string | readonly string[];
    readonly Resource: string | readonly string[];
    readonly Condition?: Readonly<Record<string, Readonly<Record<string, string | readonly string[]>>>>;
  }
  const list = (value: string | readonly string[]): readonly string[] => (typeof value === 'string' ? [value] : value);
  const statementsOf = (role: Resource): Statement[] =>
    ((properties(role).Policies ?? []) as { PolicyDocument: { Statement: Statement[] } }[]).flatMap(
      ({ PolicyDocument }) => PolicyDocument.Statement,
    );
  type Right = readonly [resource: string, actions: readonly string[], partitions: readonly string[]];
  const leadingKeys = 'dynamodb:LeadingKeys';
  const rightsOf = (of: SynthesisedStage): [holder: string, rights: readonly Right[]][] =>
    everything(of)
      .filter(([, { Type }]) => Type === 'AWS::IAM::Role')
      .map(([id, role]): [string, Right[]] => [
        String(role.Properties.Description ?? id),
        statementsOf(role).flatMap(({ Action, Resource, Condition }) => {
          const partitions = list(Condition?.['ForAllValues:StringLike']?.[leadingKeys] ?? []);
          return list(Resource).map((resource): Right => [resource, list(Action), partitions]);
        }),
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
      const rights = rightsOf(production).find(([holder]) => holder === `${file} of stage production`)?.[1] ?? [];
      const lines = rights.map(([to, actions, partitions]) =>
        [
          `${actions.join(', ')} on \`${onPage(to)}\``,
          ...(partitions.length > 0 ? [`partitions ${partitions.map((one) => `\`${one}\``).join(' ')}`] : []),
        ].join(', '),
      );
      return [`\`${name}\``, lines.join('<br>')];
    });
    expect(deployed).toEqual(listed);
  });

  test('of everything else are to start one function and to leave its dead letters', () => {
    const others = rightsOf(production).filter(([holder]) => !holder.startsWith('functions/'));
    expect(others.map(([holder]) => holder.replace(/Role.*/, '')).sort()).toEqual([
      'ApiGatewayLog',
      'Release',
      ...cloudFunctions
        .filter(({ trigger }) => trigger.kind === 'schedule')
        .map(({ name }) => `${name.replaceAll('-', '')}Schedule`),
    ]);
    const rights = others
      .filter(([holder]) => !holder.startsWith('Release'))
      .flatMap(([, each]) => each.map(([to, actions]) => `${actions.join(' ')} ${onPage(to)}`));
    expect(rights.filter((right) => !/^(lambda:InvokeFunction|sqs:SendMessage) arn:[^*]+$/.test(right))).toEqual([]);
  });

  test('name actions and resources in full, unless AWS names them at run time', () => {
    for (const { Effect, Action, Resource } of ofType('AWS::IAM::Role', production).flatMap(statementsOf)) {
      expect(Effect).toBe('Allow');
      expect(list(Action).filter((action) => action.includes('*'))).toEqual([]);
      for (const resource of list(Resource)) expect(() => wildcardExcuse(resource)).not.toThrow();
    }
  });

  test('to the table are to kinds of partitions; a request that names none, and everything of all tenants at once, is not allowed', () => {
    const onTable = ofType('AWS::IAM::Role', production)
      .flatMap(statementsOf)
      .filter(({ Action }) => list(Action).some((action) => /^dynamodb:.*(Item|Query|Scan)/.test(action)));
    expect(onTable.length).toBeGreaterThan(cloudFunctions.length);
    for (const { Condition = {} } of onTable) {
      const patterns = list(Condition['ForAllValues:StringLike']?.[leadingKeys] ?? []);
      expect(patterns).not.toEqual([]);
      expect(Condition.Null).toMatchObject({ [leadingKeys]: 'false' });
      expect(
        patterns.filter((pattern) => !/^(t\/(\*|\$\{aws:PrincipalTag\/tenant\})|system\/|§outbox)/.test(pattern)),
      ).toEqual([]);
      if (patterns.includes('t/*')) {
        expect(Condition['ForAllValues:StringNotLike']).toEqual({ [leadingKeys]: ['t/*/*'] });
      }
    }
    const whole = rightsOf(production).filter(([, rights]) => rights.some(([, , kinds]) => kinds.includes('t/*/*')));
    expect(whole.map(([holder]) => holder.replace(/ of stage .*/, ''))).toEqual([
      'functions/api/tenant/confirm-deletion.ts',
      // A tenant without peerings ends at once.
      'functions/api/tenants/delete.ts',
      'functions/schedule/sweep.ts',
    ]);
  });

  test('of a function that serves one tenant are this tenant’s, in a session of its own role that no other principal gets', () => {
    const tag = 'aws:PrincipalTag/tenant';
    const withSessions = cloudFunctions.filter(({ access }) => access.includes('table:session'));
    expect(withSessions.length).toBeGreaterThan(30);
    for (const { file, name } of withSessions) {
      const role = ofType('AWS::IAM::Role', production).find(
        ({ Properties }) => Properties.Description === `${file} of stage production`,
      );
      if (role === undefined) throw new Error(`no role of ${file}`);
      const { AssumeRolePolicyDocument, RoleName } = properties(role) as {
        RoleName: string;
        AssumeRolePolicyDocument: { Statement: (Statement & { Principal: object })[] };
      };
      const arn = `arn:<AWS::Partition>:iam::<AWS::AccountId>:role/isthmus-production-${name}`;
      expect([RoleName, AssumeRolePolicyDocument.Statement]).toMatchObject([
        `isthmus-production-${name}`,
        [
          { Principal: { Service: 'lambda.amazonaws.com' } },
          { Condition: { ArnEquals: { 'aws:PrincipalArn': arn }, Null: { [tag]: 'true' } } },
        ],
      ]);
      const onTable = statementsOf(role).filter(({ Action }) => JSON.stringify(Action).includes('dynamodb:'));
      const ofAll = onTable.filter(({ Condition }) => Condition?.Null?.[tag] === 'true');
      const ofOne = onTable.filter(({ Condition }) => Condition?.Null?.[tag] === 'false');
      expect(ofAll.length + ofOne.length).toBe(onTable.length);
      const keysOf = (statements: readonly Statement[]) =>
        statements.flatMap(({ Condition }) => list(Condition?.['ForAllValues:StringLike']?.[leadingKeys] ?? []));
      expect(
        keysOf(ofOne).filter((pattern) => pattern.startsWith('t/') && !pattern.startsWith(`t/\${${tag}}`)),
      ).toEqual([]);
      expect(keysOf(ofAll).filter((pattern) => /audit|peerings|clusters|webhook|outbox/.test(pattern))).toEqual([]);
    }
  });

  test('come from the role’s own list alone', () => {
    expect(ofType('AWS::IAM::Policy', production)).toEqual([]);
    expect(ofType('AWS::IAM::ManagedPolicy', production)).toEqual([]);
    const managed = ofType('AWS::IAM::Role', production).filter(({ Properties }) => 'ManagedPolicyArns' in Properties);
    expect(managed.map((role) => properties(role).ManagedPolicyArns)).toEqual([
      ['arn:<AWS::Partition>:iam::aws:policy/service-role/AmazonAPIGatewayPushToCloudWatchLogs'],
    ]);
  });

  test('to become a role of a tenant end at roles that are named for it', () => {
    const assuming = ofType('AWS::IAM::Role', production)
      .flatMap(statementsOf)
      .filter(({ Action, Resource }) => Action === 'sts:AssumeRole' || JSON.stringify(Resource).includes('::*'));
    expect(assuming).toEqual([
      expect.objectContaining({
        Action: 'sts:AssumeRole',
        Resource: 'arn:<AWS::Partition>:iam::*:role/isthmus-events-*',
      }),
    ]);
  });

  test('to publish, to read the stream and to become a role of a tenant are of one function each', () => {
    const holders = (action: string): string[] =>
      rightsOf(production)
        .filter(([, rights]) => rights.some(([, actions]) => actions.includes(action)))
        .map(([holder]) => holder.replace(/ of stage .*/, ''));
    expect(holders('events:PutEvents')).toEqual(['functions/events/dispatch.ts']);
    const others = cloudFunctions.filter(({ access }) => !access.includes('table:session')).map(({ file }) => file);
    expect(holders('sts:AssumeRole').filter((holder) => others.includes(holder))).toEqual([
      'functions/events/webhooks.ts',
    ]);
    expect(holders('dynamodb:GetRecords')).toEqual(['functions/events/dispatch.ts']);
    expect(holders('dynamodb:Scan')).toEqual([]);
    expect(holders('dynamodb:DeleteTable')).toEqual([]);
  });
});
