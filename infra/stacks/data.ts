/** The one table, and the keyring that secrets in it are sealed with: everything the broker must not lose. */
import { CfnOutput, RemovalPolicy, Stack, type StackProps, Validations } from 'aws-cdk-lib';
import { AttributeType, Billing, StreamViewType, TableEncryptionV2, TableV2 } from 'aws-cdk-lib/aws-dynamodb';
import { Secret } from 'aws-cdk-lib/aws-secretsmanager';
import type { Construct } from 'constructs';
import { table as layout } from '#control/adapters/dynamodb/table.ts';
import { here } from '../constructs/here.ts';
import { namesOf } from '../constructs/names.ts';
import { excuses } from '../rules/excuses.ts';
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
      // The key that AWS owns: a key of our own costs a dollar a month and gives no protection from a principal that can read the table.
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
    // 0.40 USD a month under the key that AWS manages. A key of our own in KMS costs 1 USD, and an
    // encrypted parameter cannot be made by a template.
    const keyring = new Secret(this, 'Keyring', {
      secretName: namesOf(settings, here).boxSecret,
      description: 'Seals what webhooks sign with; new keys are added, see docs/deploy.md',
      generateSecretString: {
        secretStringTemplate: '{}',
        generateStringKey: 'k1',
        passwordLength: 64,
        excludePunctuation: true,
      },
      removalPolicy: settings.keepData ? RemovalPolicy.RETAIN : RemovalPolicy.DESTROY,
    });
    Validations.of(keyring).acknowledge(excuses.rotatedByHand);
    new CfnOutput(this, 'TableName', { value: table.tableName });
  }
}
