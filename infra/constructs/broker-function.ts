/** One function file as a Lambda function: its bundle, its own role with nothing but its statements, its dead letters, and the alias that it is called by. */
import { Duration, RemovalPolicy, Stack, Validations } from 'aws-cdk-lib';
import {
  AccountRootPrincipal,
  Effect,
  PolicyDocument,
  PolicyStatement,
  Role,
  ServicePrincipal,
} from 'aws-cdk-lib/aws-iam';
import {
  Alias,
  Architecture,
  type Code,
  type IFunction,
  type IVersion,
  Function as Lambda,
  LoggingFormat,
  Runtime,
  SystemLogLevel,
  Tracing,
} from 'aws-cdk-lib/aws-lambda';
import { SqsDestination } from 'aws-cdk-lib/aws-lambda-destinations';
import type { ILogGroup } from 'aws-cdk-lib/aws-logs';
import type { Queue } from 'aws-cdk-lib/aws-sqs';
import { Construct } from 'constructs';
import type { CloudFunction } from '#functions/cloud-function.ts';
import { wildcardExcuse } from '../rules/excuses.ts';
import type { StageSettings } from '../stages.ts';
import { conditionsOf, isAsynchronous, type Reachable, statementsOf } from './access.ts';
import { canary } from './canary.ts';
import { deadLetters } from './dead-letters.ts';
import { liveAlias } from './names.ts';
import { readable } from './readable.ts';

/** What the functions of one stage have in common. */
export interface Runs {
  readonly settings: StageSettings;
  readonly reach: Reachable;
  readonly environment: Readonly<Record<string, string>>;
  readonly codeOf: (fn: CloudFunction) => Code;
}

export interface RunsWithLog extends Runs {
  /** Of its part. */
  readonly logGroup: ILogGroup;
}

export class BrokerFunction extends Construct {
  /** What calls the function calls this: a release moves it from version to version. */
  readonly live: IFunction;
  /** Undefined when callers wait for the answer. */
  readonly deadLetters: Queue | undefined;

  constructor(scope: Construct, fn: CloudFunction, { settings, reach, environment, codeOf, logGroup }: RunsWithLog) {
    super(scope, fn.name);
    const { names } = reach;
    const asynchronous = isAsynchronous(fn);
    const reserved = settings.reservedConcurrency[fn.name];
    this.deadLetters = asynchronous ? deadLetters(this, names, fn.name) : undefined;
    const statements = statementsOf(fn, reach);
    const role = new Role(this, 'Role', {
      roleName: names.function(fn.name),
      assumedBy: new ServicePrincipal('lambda.amazonaws.com'),
      description: `${fn.file} of stage ${settings.name}`,
      inlinePolicies: {
        own: new PolicyDocument({
          minimize: false,
          statements: statements.map(
            (statement) =>
              new PolicyStatement({
                effect: Effect.ALLOW,
                sid: statement.sid,
                actions: [...statement.actions],
                resources: [...statement.resources],
                conditions: conditionsOf(statement),
              }),
          ),
        }),
      },
    });
    const roleArn = names.functionRoleArn(fn.name);
    const hasSessions = fn.access.includes('table:session');
    if (hasSessions) becomesItself(role, roleArn);
    for (const resource of statements.flatMap(({ resources }) => resources)) {
      const excuse = wildcardExcuse(readable(Stack.of(this).resolve(resource)));
      if (excuse !== undefined) Validations.of(role).acknowledge(excuse);
    }
    const lambda = new Lambda(this, 'Function', {
      functionName: names.function(fn.name),
      description: fn.file,
      runtime: Runtime.NODEJS_24_X,
      architecture: Architecture.ARM_64,
      handler: 'index.handler',
      code: codeOf(fn),
      memorySize: fn.memoryMb,
      timeout: Duration.seconds(fn.timeoutSeconds),
      environment: { ...environment, ...(hasSessions && { SESSION_ROLE: roleArn }) },
      // Its rights are the list above; grants by other constructs are ignored.
      role: role.withoutPolicyUpdates(),
      logGroup,
      loggingFormat: LoggingFormat.JSON,
      // START, END and REPORT lines would be most of the log of an idle broker; the same numbers are metrics.
      systemLogLevelV2: SystemLogLevel.WARN,
      tracing: Tracing.DISABLED,
      ...(reserved !== undefined && { reservedConcurrentExecutions: reserved }),
      // The way back.
      currentVersionOptions: { removalPolicy: RemovalPolicy.RETAIN },
    });
    const alias = new Alias(this, 'Live', {
      aliasName: liveAlias,
      version: lambda.currentVersion as IVersion,
      // Streams have retries of their own, on the mapping.
      ...(this.deadLetters !== undefined &&
        fn.trigger.kind !== 'stream' && {
          onFailure: new SqsDestination(this.deadLetters),
          retryAttempts: 2,
          maxEventAge: Duration.hours(1),
        }),
    });
    this.live = alias as IFunction;
    canary(this, fn, alias, { settings, names });
  }
}

/** A role cannot name itself before it exists: the account is trusted, on condition that it is this very role, and that it says for which tenant. */
function becomesItself(role: Role, roleArn: string): void {
  role.assumeRolePolicy?.addStatements(
    new PolicyStatement({
      sid: 'ItselfForOneTenant',
      principals: [new AccountRootPrincipal()],
      actions: ['sts:AssumeRole', 'sts:TagSession'],
      conditions: {
        ArnEquals: { 'aws:PrincipalArn': roleArn },
        StringLike: { 'aws:RequestTag/tenant': '?*' },
        'ForAllValues:StringEquals': { 'aws:TagKeys': ['tenant'] },
        // A session does not become that of another tenant.
        Null: { 'aws:PrincipalTag/tenant': 'true' },
      },
    }),
  );
}
