/** The policy of a function's role on a table, from where the infrastructure takes it. */
import type { CloudFunction } from '#functions/cloud-function.ts';
import { conditionsOf, statementsOf } from '#infra/constructs/access.ts';
import { namesOf } from '#infra/constructs/names.ts';
import type { AccessRequest, PolicyStatement } from './iam.ts';

const place = { partition: 'aws', region: 'eu-central-1', account: '123456789012' };
const namesFor = (tableName: string) =>
  namesOf({ name: 'test', restoredTable: { name: tableName, streamArn: 'unused' } }, place);

export const tableArn = (tableName: string): string => namesFor(tableName).tableArn;

export const functionRoleArn = (name: string): string => namesFor('any').functionRoleArn(name);

export function functionPolicy(fn: CloudFunction, tableName: string): readonly PolicyStatement[] {
  const names = namesFor(tableName);
  const reach = { names, channel: { apiId: 'channel', stageName: 'v1' }, tableStreamArn: `${names.tableArn}/stream/T` };
  return statementsOf(fn, reach).map((statement) => ({ ...statement, conditions: conditionsOf(statement) }));
}

/** `tenant`: of the session. */
export const tableContext = (pk: string, tenant?: string): Pick<AccessRequest, 'context'> => ({
  context: { 'dynamodb:LeadingKeys': [pk], ...(tenant !== undefined && { 'aws:PrincipalTag/tenant': [tenant] }) },
});
