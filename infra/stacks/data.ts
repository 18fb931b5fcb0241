/** The one table: everything the broker must not lose. */
import { CfnOutput, RemovalPolicy, Stack, type StackProps } from 'aws-cdk-lib';
import { AttributeType, Billing, StreamViewType, TableEncryptionV2, TableV2 } from 'aws-cdk-lib/aws-dynamodb';
import type { Construct } from 'constructs';
import { table as layout } from '#control/adapters/dynamodb/table.ts';
import { here } from '../constructs/here.ts';
import { namesOf } from '../constructs/names.ts';
import type { StageSettings } from '../stages.ts';

export class DataStack extends Stack {
  /** Of the table in use. Its name has a time stamp in it, hence it cannot be derived. */
  readonly tableStreamArn: string;

  constructor(scope: Construct, id: string, settings: StageSettings, props: StackProps) {
    super(scope, id, props);
    const table = new TableV2(this, 'Table', {
      // Its own name even after a restore: this stack goes on keeping the table that it made.
      tableName: namesOf({ name: settings.name }, here).table,
      partitionKey: { name: layout.partitionKey, type: AttributeType.STRING },
      sortKey: { name: layout.sortKey, type: AttributeType.STRING },
      timeToLiveAttribute: layout.timeToLive,
      billing: Billing.onDemand(),
      // The key that AWS owns: a key of our own costs a dollar a month and protects from nobody who can read the table.
      encryption: TableEncryptionV2.dynamoOwnedKey(),
      dynamoStream: StreamViewType[layout.streamView],
      pointInTimeRecoverySpecification: {
        pointInTimeRecoveryEnabled: true,
        recoveryPeriodInDays: settings.pointInTimeRecoveryDays,
      },
      deletionProtection: settings.keepData,
      removalPolicy: settings.keepData ? RemovalPolicy.RETAIN : RemovalPolicy.DESTROY,
    });
    const ownStreamArn = this.exportValue(table.tableStreamArn, { name: `isthmus-${settings.name}-table-stream` });
    this.tableStreamArn = settings.restoredTable?.streamArn ?? ownStreamArn;
    new CfnOutput(this, 'TableName', { value: table.tableName });
  }
}
