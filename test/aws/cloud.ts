/**
 * The hosted broker on this machine: every function as its deployed bundle in AWS's runtime client on Node 24, the table in DynamoDB Local, the
 * bus in moto, each function with the rights of its role on the table, and the wiring that the infrastructure does (stream to dispatcher, rules to functions) done by `deliver`.
 */
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { CreateEventBusCommand, PutRuleCommand, PutTargetsCommand } from '@aws-sdk/client-eventbridge';
import { jitteredBackoff } from '#control/adapters/dynamodb/backoff.ts';
import { createDynamoDbStore } from '#control/adapters/dynamodb/dynamodb-store.ts';
import type { Store } from '#control/ports/store.ts';
import { cloudFunctions } from '#functions/catalogue.ts';
import type { CloudFunction } from '#functions/cloud-function.ts';
import type { CloudEnvironment } from '#functions/runtime/env.ts';
import { bundleFunctions } from '#scripts/lambda/bundle.ts';
import { ensureAwsCounterparts } from '#scripts/setup/aws-counterparts.ts';
import { cacheDir } from '#scripts/setup/cache-dir.ts';
import { ensureNode24 } from '#scripts/setup/node24.ts';
import type { Clock } from '#shared/ports/clock.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { repositoryRoot } from '#test/testbed/repository-root.ts';
import { type DynamoDbLocal, fakeCredentials, fakeRegion, startDynamoDbLocal } from './dynamodb-local.ts';
import { functionRoleArn } from './function-policy.ts';
import { type GuardedTable, startGuardedTable } from './guarded-table.ts';
import { type Moto, startMoto } from './moto.ts';
import { type LambdaProcess, startLambda } from './runtime-api.ts';
import { type SocketGateway, startSocketGateway } from './socket-gateway.ts';
import { openTableStream, type StreamRecord } from './table-stream.ts';

export const brokerUrl = 'https://broker.example.com';

export interface Cloud {
  readonly dynamodb: DynamoDbLocal;
  readonly tableName: string;
  readonly moto: Moto;
  readonly sockets: SocketGateway;
  /** The table, from this process: for bootstrapping and for looking. */
  store(clock?: Clock): Store;
  /** Calls a function by its name in the catalogue; its process is started at the first call and then stays warm. */
  invoke<T = unknown>(name: string, event: unknown): Promise<T>;
  /** Ends the process of a function, as the platform does at any time. */
  cool(name: string): Promise<void>;
  /** Records of the stream go to the dispatcher, what reaches the bus to the functions of its rules, until nothing is left. Names the functions that ran. */
  deliver(options?: { /** Deliver each event that often. */ readonly times?: number }): Promise<readonly string[]>;
  /** Takes what the stream and the bus hold without delivering it: lost. */
  lose(): Promise<void>;
  /** Requests of functions that the policies of their roles do not allow, and how many each made that they do. */
  readonly rights: Pick<GuardedTable, 'refused' | 'allowed' | 'sessions'>;
  /** Everything that any function wrote to its log. */
  readonly log: string;
  stop(): Promise<void>;
}

/** `extra`: environment of every process. */
export async function startCloud(
  names: readonly string[],
  extra: Readonly<Record<string, string>> = {},
): Promise<Cloud> {
  const cache = cacheDir();
  const quiet = { root: repositoryRoot, cache, log: () => undefined };
  const [{ runtimeClient }, node] = await Promise.all([ensureAwsCounterparts(quiet), ensureNode24(quiet)]);
  const functions = cloudFunctions.filter(({ name }) => names.includes(name));
  const missing = names.filter((name) => !functions.some((fn) => fn.name === name));
  if (missing.length > 0) throw new Error(`not in the catalogue: ${missing.join(', ')}`);
  const dir = await mkdtemp(path.join(os.tmpdir(), 'isthmus-cloud-'));
  const [bundles, dynamodb, moto, sockets] = await Promise.all([
    bundleFunctions({ root: repositoryRoot, outDir: dir, functions }),
    startDynamoDbLocal(),
    startMoto(),
    startSocketGateway(),
  ]);
  const tableName = await dynamodb.newTable();
  const guarded = await startGuardedTable(dynamodb.endpoint, tableName, functions);
  const stream = openTableStream(dynamodb.endpoint, tableName);
  const rules = await makeRules(moto, functions);
  await moto.putSecret(boxSecret, JSON.stringify({ k1: randomBytes(48).toString('base64url') }));
  const environment: CloudEnvironment = {
    TABLE_NAME: tableName,
    BUS_NAME: busName,
    BROKER_URL: brokerUrl,
    SOCKET_ENDPOINT: sockets.endpoint,
    BOX_SECRET: boxSecret,
    EVENT_PRINCIPAL: 'arn:aws:iam::210987654321:root',
    LOG_LEVEL: 'debug',
  };
  const running = new Map<string, Promise<LambdaProcess>>();
  const logs: (() => string)[] = [];

  async function start({ name, timeoutSeconds, access }: CloudFunction): Promise<LambdaProcess> {
    const { file = '' } = bundles.find(({ fn }) => fn.name === name) ?? {};
    const lambda = await startLambda({
      name,
      command: [node, runtimeClient, 'index.handler'],
      cwd: path.dirname(file),
      timeoutSeconds,
      env: {
        ...environment,
        AWS_REGION: fakeRegion,
        // Of a session of its role.
        AWS_ACCESS_KEY_ID: name,
        AWS_SECRET_ACCESS_KEY: fakeCredentials.secretAccessKey,
        AWS_ENDPOINT_URL_DYNAMODB: guarded.endpoint,
        AWS_ENDPOINT_URL_STS: guarded.endpoint,
        ...(access.includes('table:session') && { SESSION_ROLE: functionRoleArn(name) }),
        AWS_ENDPOINT_URL_EVENTBRIDGE: moto.endpoint,
        AWS_ENDPOINT_URL_SECRETS_MANAGER: moto.endpoint,
        EVENT_TARGETS_ENDPOINT: moto.endpoint,
        ...extra,
        _HANDLER: 'index.handler',
      },
    });
    logs.push(() => lambda.log);
    return lambda;
  }

  async function invoke<T>(name: string, event: unknown): Promise<T> {
    const fn = functions.find((one) => one.name === name);
    if (fn === undefined) throw new Error(`${name} is not among the functions of this test`);
    const lambda = running.get(name) ?? start(fn);
    running.set(name, lambda);
    return (await lambda).invoke<T>(event);
  }

  async function cool(name: string): Promise<void> {
    const lambda = running.get(name);
    running.delete(name);
    await (await lambda)?.stop();
  }

  return {
    dynamodb,
    tableName,
    moto,
    sockets,
    rights: guarded,
    store: (clock = systemClock) =>
      createDynamoDbStore({
        client: dynamodb.client(),
        tableName,
        clock,
        backoff: jitteredBackoff(systemClock, Math.random),
      }),
    invoke,
    cool,
    async deliver({ times = 1 } = {}) {
      const ran: string[] = [];
      for (;;) {
        const records = (await stream.next()).filter(isNewEvent);
        const lambdaEvent = { Records: records.map(asLambdaRecord) };
        for (let time = 0; time < times && records.length > 0; time += 1) {
          const answer = await invoke<{ readonly batchItemFailures: readonly unknown[] }>(
            'events-dispatch',
            lambdaEvent,
          );
          if (answer.batchItemFailures.length > 0) throw new Error('the bus refused events');
        }
        let delivered = false;
        for (const { name, take } of rules) {
          for (const event of await take()) {
            delivered = true;
            ran.push(name);
            await invoke(name, event);
          }
        }
        if (records.length === 0 && !delivered) return ran;
      }
    },
    async lose() {
      await stream.next();
      for (const { take } of rules) await take();
    },
    get log() {
      return logs.map((log) => log()).join('\n');
    },
    async stop() {
      await Promise.all([...running.keys()].map(cool));
      sockets.stop();
      guarded.stop();
      await Promise.all([dynamodb.stop(), moto.stop()]);
      await rm(dir, { recursive: true, force: true });
    },
  };
}

const busName = 'isthmus';
export const boxSecret = 'isthmus-test-keyring';

/** A rule per event function, with a queue for its target where Lambda would be called. */
async function makeRules(moto: Moto, functions: readonly CloudFunction[]) {
  const client = moto.eventBridge();
  await client.send(new CreateEventBusCommand({ Name: busName }));
  return Promise.all(
    functions.flatMap(({ name, trigger }) => {
      if (trigger.kind !== 'event') return [];
      const make = async () => {
        const { arn, take } = await moto.queue(name);
        const EventPattern = JSON.stringify(trigger.pattern);
        await client.send(new PutRuleCommand({ Name: name, EventBusName: busName, EventPattern }));
        await client.send(
          new PutTargetsCommand({ Rule: name, EventBusName: busName, Targets: [{ Id: 'queue', Arn: arn }] }),
        );
        return { name, take };
      };
      return [make()];
    }),
  );
}

/** The filter of the stream, which `patterns.real.test.ts` holds against AWS's own matcher. */
const isNewEvent = ({ eventName, dynamodb }: StreamRecord): boolean =>
  eventName === 'INSERT' && dynamodb.NewImage?.kind?.S === 'event';

const asLambdaRecord = ({ dynamodb, ...record }: StreamRecord) => ({
  ...record,
  dynamodb,
  eventVersion: '1.1',
  eventSource: 'aws:dynamodb',
  awsRegion: fakeRegion,
});
