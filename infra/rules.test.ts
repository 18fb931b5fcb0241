import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { App, Stack } from 'aws-cdk-lib';
import { Queue } from 'aws-cdk-lib/aws-sqs';
import { describe, expect, onTestFinished, test } from 'vitest';
import { brokerApp } from './broker-app.ts';
import { minutesOf } from './broker-stage.ts';
import { wildcardExcuse } from './rules/excuses.ts';
import { idleCost, scheduleRunPrice } from './rules/idle-cost.ts';
import { StageSettings, stages } from './stages.ts';

describe('settings of a stage', () => {
  test.each(stages)('$name are what the schema accepts', (settings) => {
    expect(StageSettings.parse(settings)).toEqual(settings);
  });

  test.each([
    { what: 'a name with a dash, which would blur physical names', over: { name: 'pro-duction' } },
    { what: 'a retention that CloudWatch does not know', over: { logDays: 42 } },
    { what: 'a misspelt setting', over: { keepdata: true } },
    { what: 'a provider that a policy cannot name', over: { consoleIssuers: ['https://[2001:db8::1]'] } },
    { what: 'a provider with a path', over: { consoleIssuers: ['https://id.example.com/realms/x'] } },
    { what: 'more days of recovery than AWS keeps', over: { pointInTimeRecoveryDays: 36 } },
  ])('refuse $what', ({ over }) => {
    expect(StageSettings.safeParse({ ...stages[0], ...over }).success).toBe(false);
  });
});

describe('rules', () => {
  test.each([
    { rate: 'rate(1 minute)', minutes: 1 },
    { rate: 'rate(5 minutes)', minutes: 5 },
    { rate: 'rate(2 hours)', minutes: 120 },
    { rate: 'rate(1 day)', minutes: 1_440 },
  ])('$rate is $minutes minutes', ({ rate, minutes }) => {
    expect(minutesOf(rate)).toBe(minutes);
  });

  test('a schedule in another form is refused, naming it', () => {
    expect(() => minutesOf('cron(0 3 * * ? *)')).toThrow('got "cron(0 3 * * ? *)"');
  });

  test.each(['*', 'arn:aws:dynamodb:r:a:table/*', 'arn:aws:sqs:r:a:isthmus-*', 'arn:aws:logs:r:a:log-group:*'])(
    'a right to %s without a stated reason fails',
    (resource) => {
      expect(() => wildcardExcuse(resource)).toThrow('name the resource in full');
    },
  );

  test('a resource without a listed standing price stops the count', () => {
    expect(() => idleCost({ resourceTypes: ['AWS::EC2::NatGateway'], schedules: [] })).toThrow('AWS::EC2::NatGateway');
  });

  test('an idle cost is what stands there and what runs by the clock', () => {
    const resourceTypes = ['AWS::CloudWatch::Alarm', 'AWS::CloudWatch::Alarm', 'AWS::Lambda::Function'];
    const cost = idleCost({ resourceTypes, schedules: [{ everyMinutes: 60, memoryMb: 1_024 }] });
    expect(cost.alarms).toBeCloseTo(0.2);
    expect(cost.total).toBeCloseTo(0.2 + 720 * scheduleRunPrice(1_024));
  });

  test('a finding of the rule pack that has no excuse fails the synthesis', () => {
    const outdir = mkdtempSync(path.join(os.tmpdir(), 'isthmus-rules-'));
    onTestFinished(() => rmSync(outdir, { recursive: true }));
    const app = brokerApp({
      outdir,
      stages: [],
      functions: [],
      codeOf: () => undefined as never,
      builtinCloudFormationValidation: false,
    });
    expect(app).toBeInstanceOf(App);
    new Queue(new Stack(app, 'careless'), 'Queue');
    expect(() => app.synth()).toThrow(/validation/i);
  });
});
