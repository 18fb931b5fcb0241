/** `npm run operator-key -- STAGE`: an operator key for the broker of a stage, with the AWS credentials of this shell. */
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { namesOf } from '#infra/constructs/names.ts';
import { stages } from '#infra/stages.ts';
import { issueOperatorKey } from './issue.ts';

const [name] = process.argv.slice(2);
const settings = stages.find((stage) => stage.name === name);
if (settings === undefined) {
  console.error(
    `usage: npm run operator-key -- STAGE\nSTAGE is ${JSON.stringify(name ?? '')}, accepted is one of ${stages.map((stage) => stage.name).join(', ')} (infra/stages.ts)`,
  );
  process.exit(2);
}
const { table } = namesOf(settings, {
  partition: 'aws',
  region: settings.region ?? '',
  account: settings.account ?? '',
});
const client = new DynamoDBClient(settings.region === undefined ? {} : { region: settings.region });
try {
  console.log(await issueOperatorKey({ client, tableName: table }));
  console.error(
    'this is shown once; keep it where secrets are kept. It makes tenants: POST /v1/tenants (docs/deploy.md)',
  );
} catch (error) {
  console.error(
    `no key for the table ${table}: ${(error as Error).message}; is the data stack deployed, and are these the account and Region of it?`,
  );
  process.exitCode = 1;
}
