/** The command that restores a table, against a service that answers as AWS describes it: slowly, and without the settings of the table it came from. */
import {
  type DynamoDBClient,
  ResourceNotFoundException,
  type TableDescription,
  type UpdateTableCommandInput,
} from '@aws-sdk/client-dynamodb';
import { expect, test } from 'vitest';
import { ManualClock } from '#shared/ports/clock.ts';
import { type RestoreOptions, restoreTable } from './restore.ts';

const start = Date.parse('2026-11-21T08:00:00Z');
const source = 'isthmus-production';
const target = 'isthmus-production-20261121T080000Z';

/** `looks`: how often a table is asked for before a change of it is done. */
function createService({ looks = 2, failing = '' }: { readonly looks?: number; readonly failing?: string } = {}) {
  const tables = new Map<string, { -readonly [K in keyof TableDescription]: TableDescription[K] }>();
  const sent: string[] = [];
  const life = new Map<string, string>();
  const recovery = new Map<string, number>();
  let busy = 0;
  let broken = failing;
  const change = (name: string): TableDescription => {
    const table = tables.get(name);
    if (table === undefined) throw new ResourceNotFoundException({ message: name, $metadata: {} });
    if (busy > 0) throw Object.assign(new Error(`${name} is being changed`), { name: 'ResourceInUseException' });
    busy = looks;
    return table;
  };
  const operations: Record<string, (input: never) => unknown> = {
    DescribeTable: ({ TableName }: { TableName: string }) => {
      const found = tables.get(TableName);
      if (found === undefined) throw new ResourceNotFoundException({ message: TableName, $metadata: {} });
      busy = Math.max(0, busy - 1);
      return { Table: { ...found, TableStatus: busy > 0 ? 'UPDATING' : 'ACTIVE' } };
    },
    DescribeContinuousBackups: () => ({
      ContinuousBackupsDescription: {
        PointInTimeRecoveryDescription: {
          EarliestRestorableDateTime: new Date(start - 35 * 86_400_000),
          LatestRestorableDateTime: new Date(start + 3_600_000),
        },
      },
    }),
    RestoreTableToPointInTime: (input: { SourceTableName: string; TargetTableName: string; RestoreDateTime: Date }) => {
      tables.set(input.TargetTableName, {
        RestoreSummary: {
          SourceTableArn: `arn:aws:dynamodb:eu-central-1:123456789012:table/${input.SourceTableName}`,
          RestoreDateTime: input.RestoreDateTime,
          RestoreInProgress: true,
        },
      });
      busy = looks;
    },
    UpdateTable: ({ TableName, StreamSpecification, DeletionProtectionEnabled }: UpdateTableCommandInput) => {
      const table = change(TableName ?? '') as Record<string, unknown>;
      if (StreamSpecification !== undefined) {
        table.StreamSpecification = StreamSpecification;
        table.LatestStreamArn = `arn:aws:dynamodb:eu-central-1:123456789012:table/${TableName}/stream/T`;
      }
      if (DeletionProtectionEnabled !== undefined) table.DeletionProtectionEnabled = DeletionProtectionEnabled;
    },
    DescribeTimeToLive: ({ TableName }: { TableName: string }) => ({
      TimeToLiveDescription: { TimeToLiveStatus: life.has(TableName) ? 'ENABLED' : 'DISABLED' },
    }),
    UpdateTimeToLive: (input: { TableName: string; TimeToLiveSpecification: { AttributeName: string } }) =>
      void life.set(input.TableName, input.TimeToLiveSpecification.AttributeName),
    UpdateContinuousBackups: (input: {
      TableName: string;
      PointInTimeRecoverySpecification: { RecoveryPeriodInDays: number };
    }) => void recovery.set(input.TableName, input.PointInTimeRecoverySpecification.RecoveryPeriodInDays),
  };
  const client = {
    async send(command: { readonly constructor: { readonly name: string }; readonly input: never }) {
      const name = command.constructor.name.replace('Command', '');
      sent.push(name);
      if (name === broken) {
        broken = '';
        throw new Error('the connection broke');
      }
      return operations[name]?.(command.input) ?? {};
    },
  } as unknown as DynamoDBClient;
  return { client, tables, life, recovery, sent };
}

const clock = new ManualClock(start);
const options = (client: DynamoDBClient, over: Partial<RestoreOptions> = {}): RestoreOptions => ({
  client,
  source,
  target,
  at: start,
  pointInTimeRecoveryDays: 35,
  deletionProtection: true,
  // Time passes while it waits.
  clock: { now: () => clock.now(), sleep: async (ms: number) => void clock.advance(ms) } as never,
  log: () => undefined,
  ...over,
});

test('the new table gets stream, deletion protection, time to live and recovery, one after the other', async () => {
  const { client, tables, life, recovery } = createService();
  const restored = await restoreTable(options(client));
  expect(restored).toEqual({ name: target, streamArn: expect.stringContaining(`table/${target}/stream/`) });
  expect(tables.get(target)).toMatchObject({
    StreamSpecification: { StreamEnabled: true, StreamViewType: 'NEW_IMAGE' },
    DeletionProtectionEnabled: true,
  });
  expect([life.get(target), recovery.get(target)]).toEqual(['ttl', 35]);
});

test.each([
  'RestoreTableToPointInTime',
  'UpdateTable',
  'UpdateTimeToLive',
  'UpdateContinuousBackups',
  'DescribeTimeToLive',
])('a run that broke at %s is repeated as it was called, and restores once', async (failing) => {
  const { client, tables, life, recovery, sent } = createService({ failing });
  await expect(restoreTable(options(client))).rejects.toThrow('the connection broke');
  await expect(restoreTable(options(client))).resolves.toMatchObject({ name: target });
  expect(tables.size).toBe(1);
  expect([life.get(target), recovery.get(target)]).toEqual(['ttl', 35]);
  if (failing !== 'RestoreTableToPointInTime')
    expect(sent.filter((name) => name === 'RestoreTableToPointInTime')).toHaveLength(1);
});

test('a moment that the table cannot go back to is refused with those that it can', async () => {
  const { client, tables } = createService();
  await expect(restoreTable(options(client, { at: start + 7_200_000 }))).rejects.toThrow(
    '--at is 2026-11-21T10:00:00.000Z, isthmus-production can go back to 2026-10-17T08:00:00.000Z to 2026-11-21T09:00:00.000Z',
  );
  expect(tables.size).toBe(0);
});

test.each([
  {
    what: 'another moment',
    over: { at: start - 1_000 },
    says: 'holds isthmus-production as of 2026-11-21T08:00:00.000Z',
  },
  { what: 'another table', over: { source: 'isthmus-dev' }, says: 'holds isthmus-production as of' },
])('a table of that name that was restored from $what is not touched', async ({ over, says }) => {
  const { client, sent } = createService();
  await restoreTable(options(client));
  sent.splice(0);
  await expect(restoreTable(options(client, over))).rejects.toThrow(says);
  expect(sent).toEqual(['DescribeTable']);
});

test('it waits no longer than it may, and says what the table is waiting for', async () => {
  const { client } = createService({ looks: 1_000_000 });
  await expect(restoreTable(options(client, { withinMs: 600_000 }))).rejects.toThrow(
    `${target} is UPDATING after 10 minutes; repeat the command to go on waiting`,
  );
});
