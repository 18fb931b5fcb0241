/**
 * Brings the table of a hosted broker back as it was at one moment: AWS restores into a new table and leaves settings behind, which are set here.
 * What is done already is not done again, so that a run that was interrupted is repeated as it was called.
 */
import {
  DescribeContinuousBackupsCommand,
  DescribeTableCommand,
  DescribeTimeToLiveCommand,
  type DynamoDBClient,
  ResourceNotFoundException,
  RestoreTableToPointInTimeCommand,
  type TableDescription,
  UpdateContinuousBackupsCommand,
  UpdateTableCommand,
  UpdateTimeToLiveCommand,
} from '@aws-sdk/client-dynamodb';
import { table as layout } from '#control/adapters/dynamodb/table.ts';
import { AppError } from '#shared/errors/app-error.ts';
import type { Clock } from '#shared/ports/clock.ts';

export interface RestoreOptions {
  readonly client: DynamoDBClient;
  /** Name of the table that is restored; it stays as it is. */
  readonly source: string;
  /** Name of the new table. */
  readonly target: string;
  /** Milliseconds since the Unix epoch. */
  readonly at: number;
  readonly pointInTimeRecoveryDays: number;
  readonly deletionProtection: boolean;
  readonly clock: Clock;
  readonly log: (line: string) => void;
  /** How long AWS may take; a table of 100 GB takes hours. */
  readonly withinMs?: number;
}

export interface RestoredTable {
  readonly name: string;
  readonly streamArn: string;
}

const iso = (at: number): string => new Date(at).toISOString();

async function described(client: DynamoDBClient, TableName: string): Promise<TableDescription | undefined> {
  try {
    return (await client.send(new DescribeTableCommand({ TableName }))).Table;
  } catch (error) {
    if (error instanceof ResourceNotFoundException) return undefined;
    throw error;
  }
}

export async function restoreTable(options: RestoreOptions): Promise<RestoredTable> {
  const { client, source, target, log } = options;
  const before = await described(client, target);
  if (before === undefined) await begin(options);
  else mustBeOurs(before, options);
  await active(options);
  await settings(options);
  const { LatestStreamArn } = (await active(options)) ?? {};
  if (LatestStreamArn === undefined)
    throw new AppError('internal', `${target} has no stream although it was asked for`);
  log(`${target} is ready; ${source} stays as it is`);
  return { name: target, streamArn: LatestStreamArn };
}

async function begin({ client, source, target, at, log }: RestoreOptions): Promise<void> {
  const { ContinuousBackupsDescription: backups } = await client.send(
    new DescribeContinuousBackupsCommand({ TableName: source }),
  );
  const { EarliestRestorableDateTime: earliest, LatestRestorableDateTime: latest } =
    backups?.PointInTimeRecoveryDescription ?? {};
  const [from, to] = [earliest?.getTime(), latest?.getTime()];
  if (from === undefined || to === undefined || at < from || at > to) {
    const window = from === undefined || to === undefined ? 'no moment at all' : `${iso(from)} to ${iso(to)}`;
    throw new AppError('invalid_input', `--at is ${iso(at)}, ${source} can go back to ${window}`, {
      detail: { field: '--at', value: iso(at) },
    });
  }
  log(`${source} as of ${iso(at)} is restored into ${target}`);
  await client.send(
    new RestoreTableToPointInTimeCommand({
      SourceTableName: source,
      TargetTableName: target,
      RestoreDateTime: new Date(at),
    }),
  );
}

/** A table of that name that came from somewhere else, or from another moment, is not touched. */
function mustBeOurs({ RestoreSummary: summary }: TableDescription, { source, target, at }: RestoreOptions): void {
  const of = summary?.SourceTableArn?.split('/').at(-1);
  const from = summary?.RestoreDateTime?.getTime();
  // AWS keeps seconds.
  if (of === source && from !== undefined && Math.floor(from / 1_000) === Math.floor(at / 1_000)) return;
  const found = of === undefined ? 'was not restored from another' : `holds ${of} as of ${iso(from ?? 0)}`;
  throw new AppError('invalid_input', `there is a table ${target} already, which ${found}; name another by --into`, {
    detail: { field: '--into', value: target },
  });
}

/** Waits until the table takes requests and changes of its settings. */
async function active(options: RestoreOptions): Promise<TableDescription | undefined> {
  const { client, target, clock, log, withinMs = 24 * 3_600_000 } = options;
  const end = clock.now() + withinMs;
  for (let told = clock.now(); ; ) {
    const found = await described(client, target);
    if (found?.TableStatus === 'ACTIVE') return found;
    const status = found?.TableStatus ?? 'not there yet';
    if (clock.now() >= end) {
      throw new AppError(
        'deadline_exceeded',
        `${target} is ${status} after ${withinMs / 60_000} minutes; repeat the command to go on waiting`,
      );
    }
    if (clock.now() - told >= 60_000) {
      told = clock.now();
      log(`${target} is ${status}`);
    }
    await clock.sleep(2_000);
  }
}

async function settings(options: RestoreOptions): Promise<void> {
  const { client, target, pointInTimeRecoveryDays, deletionProtection } = options;
  const { StreamSpecification: stream, DeletionProtectionEnabled: isProtected } = (await active(options)) ?? {};
  // One change of a table at a time.
  if (stream?.StreamEnabled !== true) {
    const StreamSpecification = { StreamEnabled: true, StreamViewType: layout.streamView };
    await client.send(new UpdateTableCommand({ TableName: target, StreamSpecification }));
    await active(options);
  }
  if (deletionProtection && isProtected !== true) {
    await client.send(new UpdateTableCommand({ TableName: target, DeletionProtectionEnabled: true }));
    await active(options);
  }
  const { TimeToLiveDescription: life } = await client.send(new DescribeTimeToLiveCommand({ TableName: target }));
  if (life?.TimeToLiveStatus !== 'ENABLED' && life?.TimeToLiveStatus !== 'ENABLING') {
    await client.send(
      new UpdateTimeToLiveCommand({
        TableName: target,
        TimeToLiveSpecification: { Enabled: true, AttributeName: layout.timeToLive },
      }),
    );
  }
  await client.send(
    new UpdateContinuousBackupsCommand({
      TableName: target,
      PointInTimeRecoverySpecification: {
        PointInTimeRecoveryEnabled: true,
        RecoveryPeriodInDays: pointInTimeRecoveryDays,
      },
    }),
  );
}
