/** `npm run restore -- STAGE --at TIME [--into TABLE]`: the stage's table as it was, in a new one, with the AWS credentials of this shell (docs/operate.md). */
import { parseArgs } from 'node:util';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { namesOf } from '#infra/constructs/names.ts';
import { stages } from '#infra/stages.ts';
import { systemClock } from '#shared/ports/system-clock.ts';
import { restoreTable } from './restore.ts';

const usage = 'usage: npm run restore -- STAGE --at 2026-11-21T08:00:00Z [--into TABLE]';
const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { at: { type: 'string' }, into: { type: 'string' } },
});
const [name] = positionals;
const settings = stages.find((stage) => stage.name === name);
const at = Date.parse(values.at ?? '');
if (settings === undefined || Number.isNaN(at)) {
  const accepted = stages.map((stage) => stage.name).join(', ');
  console.error(
    `${usage}\nSTAGE is ${JSON.stringify(name ?? '')}, accepted is one of ${accepted}; --at is ${JSON.stringify(values.at ?? '')}, accepted is a time as above`,
  );
  process.exit(2);
}
const { table: source } = namesOf(settings, { partition: 'aws', region: '', account: '' });
const target = values.into ?? `isthmus-${settings.name}-${new Date(at).toISOString().replaceAll(/[-:]|\.\d+/g, '')}`;
const client = new DynamoDBClient(settings.region === undefined ? {} : { region: settings.region });
try {
  const restored = await restoreTable({
    client,
    source,
    target,
    at,
    pointInTimeRecoveryDays: settings.pointInTimeRecoveryDays,
    deletionProtection: settings.keepData,
    clock: systemClock,
    log: (line) => console.error(line),
  });
  console.error(`put this into stage ${settings.name} (infra/stages.ts) and deploy it:`);
  console.log(`  restoredTable: { name: '${restored.name}', streamArn: '${restored.streamArn}' },`);
} catch (error) {
  console.error(`${source} is not restored: ${(error as Error).message}`);
  process.exitCode = 1;
}
