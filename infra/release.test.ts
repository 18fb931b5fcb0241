/** How a release goes out and comes back, offline: everything calls an alias, and an alarm of the function's part takes the alias back. */
import { beforeAll, describe, expect, test } from 'vitest';
import { cloudFunctions } from '#functions/catalogue.ts';
import { releaseAlarms } from './constructs/release-alarms.ts';
import { type Resource, type SynthesisedStage, synthesise, synthesiseOne } from './testing/synthesised.ts';
import { everything, ofType, properties } from './testing/templates.ts';

let all: Readonly<Record<string, SynthesisedStage>>;
let production: SynthesisedStage;
beforeAll(() => {
  all = synthesise();
  production = all.production ?? expect.fail('no stage production');
}, 120_000);

const byId = (stage: SynthesisedStage): Readonly<Record<string, Resource>> => Object.fromEntries(everything(stage));

test('each function is called by its alias, which is at its newest version, and by nothing else', () => {
  for (const stage of Object.values(all)) {
    const resources = byId(stage);
    const aliases = Object.entries(resources).filter(([, { Type }]) => Type === 'AWS::Lambda::Alias');
    expect(aliases).toHaveLength(cloudFunctions.length);
    for (const [, alias] of aliases) {
      const { FunctionName, FunctionVersion, Name } = properties(alias);
      const version = resources[/^<(\w+)\.Version>$/.exec(String(FunctionVersion))?.[1] ?? ''];
      expect([Name, version && properties(version).FunctionName]).toEqual(['live', FunctionName]);
    }
    const called = aliases.map(([id]) => id);
    const callers = Object.values(resources).flatMap((resource): [string, string][] => {
      const own = properties(resource);
      switch (resource.Type) {
        case 'AWS::ApiGatewayV2::Integration':
          return [[resource.Type, String(own.IntegrationUri)]];
        case 'AWS::Lambda::EventSourceMapping':
        case 'AWS::Lambda::Permission':
          return [[resource.Type, String(own.FunctionName)]];
        case 'AWS::Events::Rule':
          return (own.Targets as { Arn: string }[]).map(({ Arn }) => [resource.Type, Arn]);
        case 'AWS::Scheduler::Schedule':
          return [[resource.Type, (own.Target as { Arn: string }).Arn]];
        default:
          return [];
      }
    });
    expect(callers.length).toBeGreaterThan(2 * cloudFunctions.length - 10);
    const others = callers.filter(([, to]) => !called.some((alias) => to.includes(alias)));
    expect(others).toEqual([]);
  }
});

test('the version before stays: an alias can go back to it', () => {
  for (const { DeletionPolicy } of ofType('AWS::Lambda::Version', production)) expect(DeletionPolicy).toBe('Retain');
});

describe('a release of production', () => {
  const groupOf = (stage: SynthesisedStage, fn: (typeof cloudFunctions)[number]) => {
    const name = `isthmus-${stage.settings.name}-${fn.name}`;
    const found = Object.entries(byId(stage)).find(
      ([, { Type, Properties }]) =>
        Type === 'AWS::CodeDeploy::DeploymentGroup' && Properties.DeploymentGroupName === name,
    );
    return found ?? expect.fail(`no deployment group ${name}`);
  };

  test.each(cloudFunctions)(
    'gives a tenth of the calls of $name to the new version for ten minutes, and takes it back on alarms that exist',
    (fn) => {
      const [id, group] = groupOf(production, fn);
      expect(properties(group)).toMatchObject({
        ApplicationName: 'isthmus-production-functions',
        DeploymentConfigName: 'CodeDeployDefault.LambdaCanary10Percent10Minutes',
        DeploymentStyle: { DeploymentOption: 'WITH_TRAFFIC_CONTROL', DeploymentType: 'BLUE_GREEN' },
        AutoRollbackConfiguration: {
          Enabled: true,
          Events: expect.arrayContaining([
            'DEPLOYMENT_FAILURE',
            'DEPLOYMENT_STOP_ON_ALARM',
            'DEPLOYMENT_STOP_ON_REQUEST',
          ]),
        },
        AlarmConfiguration: { Enabled: true },
      });
      const { Alarms } = properties(group).AlarmConfiguration as { Alarms: { Name: string }[] };
      expect(Alarms.map(({ Name }) => Name)).toEqual(releaseAlarms(fn).map((name) => `isthmus-production-${name}`));
      const alarms = ofType('AWS::CloudWatch::Alarm', production).map(({ Properties }) => Properties.AlarmName);
      expect(alarms).toEqual(expect.arrayContaining(Alarms.map(({ Name }) => Name)));
      const moved = ofType('AWS::Lambda::Alias', production).filter(({ UpdatePolicy }) =>
        JSON.stringify(UpdatePolicy ?? {}).includes(`"${id}"`),
      );
      expect(moved).toHaveLength(1);
    },
  );

  test('is carried out by a role that may move the aliases of these functions and read these alarms, and nothing else', () => {
    const [role] = ofType('AWS::IAM::Role', production)
      .map(properties)
      .filter(({ RoleName }) => RoleName === 'isthmus-production-releases');
    const policies = (role?.Policies ?? []) as {
      PolicyDocument: { Statement: { Action: unknown; Resource: string[] }[] };
    }[];
    const { PolicyDocument } = policies[0] ?? expect.fail('no policy');
    const [shift, read, ...more] = PolicyDocument.Statement;
    expect(more).toEqual([]);
    expect(shift?.Action).toEqual(['lambda:GetAlias', 'lambda:UpdateAlias']);
    expect(shift?.Resource.map((arn) => arn.replace(/.*:function:isthmus-production-/, ''))).toEqual(
      cloudFunctions.map(({ name }) => name),
    );
    expect(read?.Action).toBe('cloudwatch:DescribeAlarms');
    expect(JSON.stringify(read?.Resource)).not.toContain('*');
    // The most that a role's own policies may have.
    const filled = JSON.stringify(PolicyDocument)
      .replaceAll('<AWS::Partition>', 'aws-us-gov')
      .replaceAll('<AWS::Region>', 'ap-southeast-1')
      .replaceAll('<AWS::AccountId>', '123456789012');
    expect(filled.length).toBeLessThan(10_240);
  });

  test('that mends what rings asks no alarm: -c release=at-once', () => {
    const stage = synthesiseOne('production', { release: 'at-once' });
    for (const group of ofType('AWS::CodeDeploy::DeploymentGroup', stage).map(properties)) {
      expect(group.DeploymentConfigName).toBe('CodeDeployDefault.LambdaAllAtOnce');
      expect(JSON.stringify(group)).not.toMatch(/"Alarms":\[\{|STOP_ON_ALARM/);
    }
  });

  test('of the development stage moves all calls at once, without CodeDeploy', () => {
    const dev = all.dev ?? expect.fail('no stage dev');
    expect(ofType('AWS::CodeDeploy::DeploymentGroup', dev)).toEqual([]);
    for (const { UpdatePolicy } of ofType('AWS::Lambda::Alias', dev)) expect(UpdatePolicy).toBeUndefined();
  });
});
