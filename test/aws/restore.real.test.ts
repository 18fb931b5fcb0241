/** The restore drill (docs/operate.md): the command against moto's point-in-time recovery, and the broker's half on DynamoDB Local. */
import {
  BatchWriteItemCommand,
  CreateTableCommand,
  DeleteTableCommand,
  DescribeContinuousBackupsCommand,
  DescribeTableCommand,
  DescribeTimeToLiveCommand,
  DynamoDBClient,
  PutItemCommand,
  ScanCommand,
  UpdateContinuousBackupsCommand,
} from '@aws-sdk/client-dynamodb';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { jitteredBackoff } from '#control/adapters/dynamodb/backoff.ts';
import { createDynamoDbStore } from '#control/adapters/dynamodb/dynamodb-store.ts';
import type { Attributes } from '#control/adapters/dynamodb/item.ts';
import { type Control, createControl } from '#control/control.ts';
import { silentChannel } from '#control/ports/agent-channel.ts';
import { newAgentKeys, signRequest } from '#control/testing/agent-keys.ts';
import { openFacts, SimulatedCluster } from '#control/testing/simulated-cluster.ts';
import { createSystemIds } from '#functions/runtime/system-ids.ts';
import { restoreTable } from '#scripts/restore/restore.ts';
import { ManualClock } from '#shared/ports/clock.ts';
import { silentLog } from '#shared/ports/log.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { type DynamoDbLocal, fakeCredentials, fakeRegion, startDynamoDbLocal } from './dynamodb-local.ts';
import { startMoto } from './moto.ts';

test('the command restores a table through the API of point-in-time recovery, with the settings that the broker needs', async () => {
  const moto = await startMoto();
  onTestFinished(() => moto.stop());
  const client = new DynamoDBClient({ endpoint: moto.endpoint, region: fakeRegion, credentials: fakeCredentials });
  const source = 'isthmus-production';
  await client.send(
    new CreateTableCommand({
      TableName: source,
      BillingMode: 'PAY_PER_REQUEST',
      AttributeDefinitions: ['pk', 'sk'].map((AttributeName) => ({ AttributeName, AttributeType: 'S' as const })),
      KeySchema: [
        { AttributeName: 'pk', KeyType: 'HASH' },
        { AttributeName: 'sk', KeyType: 'RANGE' },
      ],
    }),
  );
  await client.send(
    new UpdateContinuousBackupsCommand({
      TableName: source,
      PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled: true },
    }),
  );
  await client.send(new PutItemCommand({ TableName: source, Item: { pk: { S: 't/acme' }, sk: { S: 'tenant' } } }));
  const { ContinuousBackupsDescription: backups } = await client.send(
    new DescribeContinuousBackupsCommand({ TableName: source }),
  );
  const at = backups?.PointInTimeRecoveryDescription?.LatestRestorableDateTime?.getTime() ?? expect.fail('no window');
  const target = 'isthmus-production-restored';
  const restored = await restoreTable({
    client,
    source,
    target,
    at,
    pointInTimeRecoveryDays: 35,
    deletionProtection: true,
    clock: systemClock,
    log: () => undefined,
    withinMs: 60_000,
  });
  const { Table } = await client.send(new DescribeTableCommand({ TableName: target }));
  expect(Table).toMatchObject({
    StreamSpecification: { StreamEnabled: true, StreamViewType: 'NEW_IMAGE' },
    DeletionProtectionEnabled: true,
    LatestStreamArn: restored.streamArn,
  });
  const { TimeToLiveDescription: life } = await client.send(new DescribeTimeToLiveCommand({ TableName: target }));
  expect(life).toMatchObject({ AttributeName: 'ttl', TimeToLiveStatus: 'ENABLED' });
  const { Items } = await client.send(new ScanCommand({ TableName: target }));
  expect(Items).toEqual([{ pk: { S: 't/acme' }, sk: { S: 'tenant' } }]);
});

describe('a broker whose table was lost and restored', () => {
  const tenant = 'acme';
  const origin = { from: '192.0.2.1', requestId: 'rq' };
  const admin = { ...origin, tenant, principal: 'api-key/ak_test', role: 'admin' } as const;
  const url = 'https://broker.example.com';
  const clock = new ManualClock(Date.now());
  const keys = newAgentKeys();
  let dynamodb: DynamoDbLocal;
  let control: Control;
  beforeAll(async () => {
    dynamodb = await startDynamoDbLocal();
  });
  afterAll(() => dynamodb?.stop());

  /** A process of the broker, as a function that starts with another name of the table. */
  const brokerOn = (tableName: string): Control =>
    createControl({
      store: createDynamoDbStore({
        client: dynamodb.client(),
        tableName,
        clock,
        backoff: jitteredBackoff(systemClock, Math.random),
      }),
      channel: silentChannel,
      clock,
      ids: createSystemIds(() => clock.now()),
      log: silentLog,
      broker: () => ({ url }),
    });

  async function put(tableName: string, items: readonly Attributes[]): Promise<void> {
    const client = dynamodb.client();
    for (let from = 0; from < items.length; from += 25) {
      const some = items.slice(from, from + 25).map((Item) => ({ PutRequest: { Item } }));
      const { UnprocessedItems } = await client.send(
        new BatchWriteItemCommand({ RequestItems: { [tableName]: some } }),
      );
      expect(UnprocessedItems ?? {}).toEqual({});
    }
    client.destroy();
  }

  async function join(id: string): Promise<SimulatedCluster> {
    const { token } = await control.clusters.createJoinToken(admin, id);
    const { secret } = JSON.parse(Buffer.from(token.slice('isthmus1.'.length), 'base64url').toString()) as {
      secret: string;
    };
    const body = { clusterId: id, token: secret, publicKey: keys.publicKey, facts: openFacts };
    const path = '/v1/agent/enroll';
    const signed = { keys, tenant, clusterId: id, audience: url, now: clock.now(), path, body: JSON.stringify(body) };
    await control.clusters.enroll(body, await signRequest(signed));
    return new SimulatedCluster(id, tenant, () => control);
  }

  test('serves on: peerings and agents go on untouched, what came after the moment is asked for again', async () => {
    const lost = await dynamodb.newTable();
    control = brokerOn(lost);
    await control.tenants.bootstrap(tenant, origin);
    const clusters = new Map<string, SimulatedCluster>();
    for (const id of ['rome', 'milan', 'turin']) clusters.set(id, await join(id));
    const until = async (done: () => Promise<boolean>): Promise<void> => {
      for (let round = 0; round < 60 && !(await done()); round += 1) {
        for (const cluster of clusters.values()) {
          await cluster.pull();
          cluster.work((id) => clusters.get(id));
          await cluster.report();
        }
        clock.advance(500);
        await control.peerings.sweep();
      }
      expect(await done()).toBe(true);
    };
    const peer = async (consumer: string, provider: string): Promise<string> => {
      const { peering } = await control.peerings.request(admin, { consumer, provider, resources: { cpu: '1' } });
      await until(async () => (await control.peerings.get(admin, peering.id)).phase === 'Ready');
      return peering.id;
    };
    const before = await peer('rome', 'milan');
    const key = await control.tenants.createKey(admin, { name: 'portal', role: 'viewer' });
    // The moment. AWS copies; DynamoDB Local has no recovery to do it with.
    const moment = await dynamodb.dump(lost);

    await peer('rome', 'turin');
    await control.tenants.revokeKey(admin, key.key.id);
    const client = dynamodb.client();
    await client.send(new DeleteTableCommand({ TableName: lost }));
    client.destroy();
    await expect(control.peerings.get(admin, before)).rejects.toThrow();

    const restored = await dynamodb.newTable();
    await put(restored, moment);
    control = brokerOn(restored);
    // Agents know newer revisions than the broker.
    const untouched = () => [...(clusters.get('milan')?.remains ?? [])].sort();
    const held = untouched();
    expect(held.length).toBeGreaterThan(0);
    expect((await control.peerings.get(admin, before)).phase).toBe('Ready');
    for (let round = 0; round < 5; round += 1) {
      await until(async () => (await control.peerings.get(admin, before)).phase === 'Ready');
      for (const cluster of clusters.values()) {
        await cluster.pull();
        cluster.work((id) => clusters.get(id));
        await cluster.report();
      }
      expect(untouched()).toEqual(held);
    }
    // A key that was revoked after the moment opens again: docs/operate.md says to revoke it first.
    await expect(control.tenants.authenticate(key.secret, origin)).resolves.toMatchObject({ tenant });
    await control.tenants.revokeKey(admin, key.key.id);
    await expect(control.tenants.authenticate(key.secret, origin)).rejects.toThrow();
    // What was asked for after it.
    const again = await peer('rome', 'turin');
    // The feed goes on from positions that were restored.
    const { items } = await control.events.list(admin, { limit: 200 });
    const subjects = items.map(({ subject }) => subject);
    expect(subjects).toContain(`peering/${before}`);
    expect(subjects.lastIndexOf(`peering/${again}`)).toBeGreaterThan(subjects.lastIndexOf(`peering/${before}`));
  });
});
