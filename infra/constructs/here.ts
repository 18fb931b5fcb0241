/** Wherever the stack is deployed. */
import { Aws } from 'aws-cdk-lib';
import type { Place } from './names.ts';

export const here: Place = { partition: Aws.PARTITION, region: Aws.REGION, account: Aws.ACCOUNT_ID };
