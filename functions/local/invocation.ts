/** The Lambda context of a local invocation. */
import type { Context } from 'aws-lambda';
import { type Composition, withComposition } from '#functions/runtime/composition.ts';

/** As API Gateway: it gives up on an integration after 30 s. */
const invocationLimitMs = 29_500;

export function invocationContext(composition: Composition, functionName: string, requestId: string): Context {
  const { clock } = composition;
  const endsAt = clock.now() + invocationLimitMs;
  return withComposition(
    {
      callbackWaitsForEmptyEventLoop: false,
      functionName,
      functionVersion: composition.version,
      invokedFunctionArn: `local:${functionName}`,
      memoryLimitInMB: '0',
      awsRequestId: requestId,
      logGroupName: 'local',
      logStreamName: 'local',
      getRemainingTimeInMillis: () => Math.max(0, endsAt - clock.now()),
      done: () => undefined,
      fail: () => undefined,
      succeed: () => undefined,
    },
    composition,
  );
}
