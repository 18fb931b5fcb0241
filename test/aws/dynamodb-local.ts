/** AWS's own DynamoDB Local on loopback, in memory, and fresh tables in it shaped as the infrastructure makes them. */
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import {
  CreateTableCommand,
  DynamoDBClient,
  ListTablesCommand,
  ScanCommand,
  UpdateTimeToLiveCommand,
  waitUntilTableExists,
} from '@aws-sdk/client-dynamodb';
import type { Attributes } from '#control/adapters/dynamodb/item.ts';
import { table } from '#control/adapters/dynamodb/table.ts';
import { ensureAwsCounterparts } from '#scripts/setup/aws-counterparts.ts';
import { cacheDir } from '#scripts/setup/cache-dir.ts';
import { repositoryRoot } from '#test/testbed/repository-root.ts';
import { startDaemon } from './daemon.ts';
import { freePort } from './free-port.ts';
import { shortLived } from './java-flags.ts';

export interface DynamoDbLocal {
  readonly endpoint: string;
  client(): DynamoDBClient;
  /** Name of a new empty table. `timeToLive`: DynamoDB Local then deletes what expired by the real clock. */
  newTable(options?: { readonly timeToLive?: boolean }): Promise<string>;
  /** Everything in a table. */
  dump(tableName: string): Promise<readonly Attributes[]>;
  stop(): Promise<void>;
}

/** Neither is checked; they keep the client from looking for real ones. */
export const fakeCredentials = { accessKeyId: 'local', secretAccessKey: 'local' } as const;
export const fakeRegion = 'eu-central-1';

export async function startDynamoDbLocal(): Promise<DynamoDbLocal> {
  const { java, jars, nativeLibraries } = await ensureAwsCounterparts({
    root: repositoryRoot,
    cache: cacheDir(),
    log: () => undefined,
  });
  const port = await freePort();
  const endpoint = `http://127.0.0.1:${port}`;
  const client = (): DynamoDBClient =>
    new DynamoDBClient({ endpoint, region: fakeRegion, credentials: fakeCredentials, maxAttempts: 3 });
  const own = client();
  const main = 'software.amazon.dynamodb.services.local.main.ServerRunner';
  // It unpacks a library at each start and leaves it behind.
  const temporary = await mkdtemp(path.join(os.tmpdir(), 'isthmus-dynamodb-'));
  const clean = () => rm(temporary, { recursive: true, force: true });
  const machine = [...shortLived, '-Xmx256m', `-Djava.io.tmpdir=${temporary}`];
  const daemon = await startDaemon({
    command: java,
    args: [...machine, `-Djava.library.path=${nativeLibraries}`, '-cp', jars, main, '-inMemory', '-port', String(port)],
    env: { DDB_LOCAL_TELEMETRY: '0' },
    ready: () => own.send(new ListTablesCommand({}), { requestTimeout: 1_000 }),
  }).catch(async (error: unknown) => {
    await clean();
    throw error;
  });
  return {
    endpoint,
    client,
    async newTable({ timeToLive = false } = {}) {
      const TableName = `t-${randomUUID()}`;
      await own.send(
        new CreateTableCommand({
          TableName,
          BillingMode: 'PAY_PER_REQUEST',
          AttributeDefinitions: [
            { AttributeName: table.partitionKey, AttributeType: 'S' },
            { AttributeName: table.sortKey, AttributeType: 'S' },
          ],
          KeySchema: [
            { AttributeName: table.partitionKey, KeyType: 'HASH' },
            { AttributeName: table.sortKey, KeyType: 'RANGE' },
          ],
          StreamSpecification: { StreamEnabled: true, StreamViewType: table.streamView },
        }),
      );
      await waitUntilTableExists({ client: own, maxWaitTime: 10, minDelay: 1 }, { TableName });
      if (timeToLive) {
        await own.send(
          new UpdateTimeToLiveCommand({
            TableName,
            TimeToLiveSpecification: { Enabled: true, AttributeName: table.timeToLive },
          }),
        );
      }
      return TableName;
    },
    async dump(TableName) {
      const items: Attributes[] = [];
      let start: Attributes | undefined;
      do {
        const page = await own.send(
          new ScanCommand({ TableName, ConsistentRead: true, ...(start ? { ExclusiveStartKey: start } : {}) }),
        );
        items.push(...(page.Items ?? []));
        start = page.LastEvaluatedKey;
      } while (start !== undefined);
      return items;
    },
    async stop() {
      own.destroy();
      await daemon.stop();
      await clean();
    },
  };
}
